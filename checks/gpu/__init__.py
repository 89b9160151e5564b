"""The node's GPUs: which there are, and in what state."""
