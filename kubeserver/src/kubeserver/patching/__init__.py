"""Changing an object by patch or apply, and who owns which field. Pure functions."""
