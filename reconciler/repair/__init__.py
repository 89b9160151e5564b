"""A repair: from a record in Git, through ordered steps with a journal, to an outcome in Git."""
