"""The node around its GPUs: network, file systems, memory, processors, clock, services. One file a check.

Read from sysfs, procfs and sockets under a root; every read survives files that vanish. What is not there and
not expected by the policy is not judged.
"""
