"""Objects on disk and in memory: one revision counter, history, watches."""
