"""The decisions about addresses. Pure: no I/O, no clock, no Kubernetes."""
