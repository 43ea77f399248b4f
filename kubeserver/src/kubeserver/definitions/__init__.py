"""CustomResourceDefinitions: what is wrong with one, and what one means."""
