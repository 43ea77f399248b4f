"""What clients are shown: tables, metadata alone, discovery, OpenAPI, health."""
