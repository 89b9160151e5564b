"""Incidents: what belongs together, what to recommend, who may approve, and the open ones in memory.

`incident` holds the value and its transition table. `correlate`, `recommend` and `approve` decide, `next_commit`
and `restore` translate between an incident and its files in Git. `store` holds the open incidents, `reports` the
newest report of each node. Nothing here does I/O.
"""
