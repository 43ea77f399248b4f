"""The tables of lists: which columns each kind has, as all programs show them; one module for each kind."""
