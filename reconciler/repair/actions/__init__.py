"""The repairs that this version can carry out, one module each, and the registry that lists them."""
