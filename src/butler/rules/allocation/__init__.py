"""Whose an IPAllocation is, when it is released, and what admission says to its creation and deletion. Pure."""
