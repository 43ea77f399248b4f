"""Pictures made of letters: pure functions from what a report says and a width to text."""
