"""The kernel log: following it (doors) and reading it (pure parsers), kept apart.

Parsers take text and return values. They never fail on any bytes: what cannot be read is reported as such.
"""
