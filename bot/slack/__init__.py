"""Slack: the only package that knows its API. `outbound` calls the Web API, `inbound` takes clicks and commands.

Nothing here decides: clicks become `ButtonClick` values for the loops, and answers come from `messages`.
"""
