"""What people are shown about addresses and clusters, computed once for the command lines and the console. Pure.

A report takes an `Estate` (what the API server holds, read at one moment) and returns plain values that can be printed
or sent as JSON. It decides nothing itself: `butler.rules` and `butler.ipam` do. Nothing is written.
"""
