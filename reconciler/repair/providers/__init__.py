"""One module for each way to act on a machine: observe it, act once, say what came of it."""
