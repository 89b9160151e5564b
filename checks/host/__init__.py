"""The node around its GPUs: network, file systems, memory, processors, clock, services. One file a check.

The checks read sysfs and procfs under a root, and sockets; every read survives files that vanish. What is
neither there nor expected by the policy is not judged.
"""
