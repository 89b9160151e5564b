"""Kubernetes: one connection, values read from it, and the only verbs that change the cluster."""
