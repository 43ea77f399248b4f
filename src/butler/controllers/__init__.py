"""Reconcilers: each reads the world, computes the wanted state and writes the difference.

They know no particular API server, only a client and caches. What they decide is in pure functions; what they write
is always preconditioned on what they read.
"""
