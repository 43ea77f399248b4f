"""One pool: how full, how fragmented, who holds what, and what an edit would do."""
