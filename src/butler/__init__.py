"""Butler: tenant Kubernetes clusters, and the addresses they live on."""

__version__ = "0.1.0"
