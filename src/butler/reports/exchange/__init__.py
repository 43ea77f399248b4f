"""Allocations as rows of a file: export, import, and the import of a running tenant."""
