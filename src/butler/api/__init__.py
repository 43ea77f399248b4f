"""The custom resources: one module per kind, plain typed structs, no I/O."""
