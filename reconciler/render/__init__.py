"""Configuration → Kubernetes objects, one module a subject. Pure."""
