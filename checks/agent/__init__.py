"""The agent, our one program on every node: it runs the checks, follows the kernel log, and reports."""
