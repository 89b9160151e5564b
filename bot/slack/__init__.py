"""Slack: the only place that knows its wire. `speak` calls the Web API, `hear` takes what people do.

Nothing here decides: clicks become `Pressed` values for `lifecycle`, answers come from `message`.
"""
