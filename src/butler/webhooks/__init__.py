"""Admission: saying no to a mistake while the person who made it is still looking."""
