"""What people are shown about addresses and clusters, computed once for the command lines and the console. Pure.

A view takes an `Estate` (what the API server holds, read at one moment) and gives plain values that can be printed or
sent as JSON. Decisions are those of the production engine (`butler.ipam`, `butler.controllers`): nothing is decided
here a second time, and nothing is written.
"""
