"""What Kubernetes does beyond the schema for its built-in kinds: one module per kind or family."""
