"""What goes on without a request: definitions are established, namespaces emptied, garbage collected.

In Kubernetes these are controllers of their own; here they run in the server's process, on the same store, and write
through the same path as requests of clients. Each is level-triggered: it may look at any object at any time, twice or
late.
"""
