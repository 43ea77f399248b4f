"""One provider: its pools, how many clusters still fit, and what is wrong with it."""
