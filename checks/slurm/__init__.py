"""What Slurm says about the nodes: rows of `scontrol show nodes` → findings. Pure; no file and no process.

The bot asks the controller once for the whole cluster. A query from every node would bring it down
(slurm-gcp #223), so these checks never run in the agent.
"""
