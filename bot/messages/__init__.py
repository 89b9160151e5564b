"""The bot's messages, rendered from values: pure, and within Slack's limits by construction.

`blocks` builds and validates; `root` is the first message of a thread, `reply` its milestones, `answer`
what only one person sees. Text from nodes and people is hostile until `blocks` has escaped it.
"""
