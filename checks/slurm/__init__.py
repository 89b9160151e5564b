"""What Slurm says about a node, read from the controller once for the whole cluster and never from each node.

Slurm's commands load the controller; thousands of nodes that ask it bring it down (slurm-gcp #223). The bot
asks, and these checks judge each node's row.
"""
