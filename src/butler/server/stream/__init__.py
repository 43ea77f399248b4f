"""The live stream: every change, to every client that may see it.

    changes.py      which objects changed lately, and how far a client has been told (pure)
    permissions.py  what of it a client may see
    items.py        how a changed object looks in the lists by now
    hub.py          sends changes to the clients that are connected

The WebSocket itself is in `routes/stream.py`.
"""
