"""Every word that the bot says, rendered from values: pure, and within Slack's limits by construction.

`blocks` builds and validates; `root` is the first message of a thread, `reply` its milestones, `answer`
what one person alone is told. Text from nodes and people is hostile until it went through `blocks`.
"""
