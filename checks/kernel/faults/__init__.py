"""What is wrong now: events become faults with a count, relate to each other, recur and clear.

An event is judged when it enters, by `relations`, `recurrence` and the evidence from NVML. Everything after
that only orders, merges and expires.
"""
