"""The decisions about addresses. Pure: no I/O, no clock, no Kubernetes.

Read it in this order. `addresses` turns text into integers and back. `layout` reads a NetworkPool's spec into the
ranges that may be handed out. `free_space` knows which of them are free and finds the best hole for a request.
`requests` reads an IPAllocation into a number of addresses, or an exact range. `decide` answers a whole batch of
requests with grants and refusals; `refusals` finds the words. `capacity` says how full a pool is.

Nothing here remembers anything between calls, except `FreeSpace`, which belongs to its caller.
"""
