"""One tenant cluster: its health, what it waits for, and its addresses."""
