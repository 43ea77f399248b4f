"""The shapes of kinds and what follows from them: validation, pruning, defaults."""
