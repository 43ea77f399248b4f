"""Pictures made of letters: pure functions from what a view says and a width to text."""
