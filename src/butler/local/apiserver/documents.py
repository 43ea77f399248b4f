"""Paths that are no resources: discovery, OpenAPI, version and health."""
