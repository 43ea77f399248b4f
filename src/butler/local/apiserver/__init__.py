"""The embedded API server: what kubectl, helm and our controllers need of Kubernetes, over SQLite.

A request passes these folders, top to bottom:

    wire/          HTTP at the edge; bodies in, answers out; refusals in the words of Kubernetes
    server.py      which logical cluster, who is asking (access/), may they
    verbs/         get, list, watch, create, replace, patch, delete: what each does, in which order
      schemas/     the shape of a kind: validation, pruning, defaults; cel/ runs its rules
      builtin/     what built-in kinds do beyond their shape
      patching/    patches, server-side apply, who owns which field
      webhooks/    admission webhooks, really called
    storage/       one revision counter, compare-and-swap, group commit, watches
    views/         tables, discovery, OpenAPI: how clients see it

`definitions/` turns CustomResourceDefinitions into resources, `background/` does what goes on without a request, and
`hosting.py` puts one logical cluster together. All decisions run on one event loop; only the disk has a thread.
"""
