"""Butler: tenant Kubernetes clusters, and the addresses they live on."""

__version__ = "0.1.0"
"""Stated here alone: pyproject.toml reads it, and `make generate` writes it into the files that repeat it."""
