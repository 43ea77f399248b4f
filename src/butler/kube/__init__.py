"""Talking to an API server: client, cache, work queue, controller, leader lease, events.

Level-triggered throughout: a cache follows the server, changes put keys on a queue, a controller hands each key to
a reconcile function, which reads the cache and writes the difference. It may run at any time, twice, or late.
"""
