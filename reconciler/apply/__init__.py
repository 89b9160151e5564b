"""What the repository wants in Kubernetes → what is there, by server-side apply."""
