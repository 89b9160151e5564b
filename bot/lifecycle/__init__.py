"""The life of incidents: what is true is compared with what should be, over and over; nothing is lost.

Every part is level-triggered and may be killed at any moment. `reports` holds the nodes' newest reports,
`desk` the open incidents, `notice` turns the one into events on the other; `git`, `cluster` and `threads`
bring Git, Kubernetes and Slack in line; `decide` takes people's clicks. `loop` runs them all.
"""
