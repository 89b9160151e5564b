"""The steps that actions are made of, one module each. A step is a value; see `reconciler.repair.step`."""
