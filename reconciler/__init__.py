"""Makes Kubernetes match Git, one small step at a time, and carries out approved repairs.

The reconciler is the only program that writes to nodes, pods and BMCs. It starts from Git, Kubernetes and
the world as it is at any moment: what it was about to do stands in the Repair's status before it does it.
"""
