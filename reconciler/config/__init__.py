"""What people write in the cluster repository, and the reader that validates it."""
