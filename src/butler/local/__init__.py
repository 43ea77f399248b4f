"""Butler on one machine: an embedded Kubernetes-compatible API server and what it needs."""
