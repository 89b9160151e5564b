"""Tells people what is wrong, asks them what to do, and records what they decide.

The bot turns node reports into incidents, one Slack thread each, and an approval into a record in Git. It
decides and records; it never acts on a node.
"""
