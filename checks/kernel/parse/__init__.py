"""What a kernel log line means: one module for each driver, each a table of the texts that the driver prints.

Texts differ between kernel versions, and a table holds the old and the new ones. All of it is pure.
"""
