"""Talking to an API server: client, cache, work queue, controller, leader lease, events."""
