"""The loops that keep reports, Git, Kubernetes, Slurm and Slack in line with the open incidents.

Every loop is level-triggered and may be killed at any moment: it compares what is with what should be, again and
again. `lifecycle` starts them all, `scheduler` wakes them.
"""
