"""People: tell them what is wrong, ask them what to do, record what they decided.

The bot turns node reports into incidents, one Slack thread each, and an approval into a record in Git. It
decides and records; it never acts on a node.
"""
