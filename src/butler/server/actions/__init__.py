"""Changing something, as the user who asked for it.

    forms.py          what users fill in, as objects; manifests.py where they write the object itself
    previews.py       what it would do
    preconditions.py  only over the version that they looked at
    impersonation.py  in their name, so that RBAC and admission decide
    audit.py          who did what, and what came of it: a line each, and Events

Reading and answering the requests is the business of the routes.
"""
