"""The actions that this version can carry out, one module each, and their registry."""
