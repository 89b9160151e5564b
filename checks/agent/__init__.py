"""The agent: the one program of ours on every node. It runs the checks, follows the kernel log, and reports."""
