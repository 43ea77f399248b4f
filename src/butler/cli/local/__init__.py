"""The control plane of this machine, seen from another terminal: its data directory, and whether it is up."""
