"""The embedded API server: what kubectl, helm and our controllers need of Kubernetes, over SQLite."""
