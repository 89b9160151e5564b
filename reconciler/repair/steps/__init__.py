"""The steps of the actions, one module each. A step is a value; see `reconciler.repair.step`."""
