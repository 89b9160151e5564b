"""Git: the mirror of the cluster's repository, what it says now, and how an event is committed to it."""
