"""The platforms that clusters are put on: whether we can get into them, and what they say of themselves."""
