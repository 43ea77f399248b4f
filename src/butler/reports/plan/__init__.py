"""What would happen: the rules applied to a copy of the estate, with nothing written."""
