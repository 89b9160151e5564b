"""Configuration → Kubernetes objects, one module per subject. Pure."""
