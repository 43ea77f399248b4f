"""The demo: what a tenant team and an operator would do with Butler, done before one's eyes.

    scene.py    what the demo sees of the estate, as values
    cast.py     who comes: names of teams, clusters and Services
    story.py    what happens next, given the scene; pure
    objects.py  the pools, the provider and the clusters that it creates; pure
    imported.py an estate that was there before Butler, as pinned allocations; pure
    player.py   looking at the estate, and doing one step
    demo.py     the demo as part of a process

It speaks to the API as any client does, and never touches what it did not make: all its objects carry a label, and an
object without it belongs to a user. Taking the label off an object makes it yours.
"""
