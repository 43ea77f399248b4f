"""Who somebody is, how they came in, and how often they may try."""
