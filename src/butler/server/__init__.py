"""The server: REST, a live stream, and the console's files, for people in browsers.

    models/      what is sent and taken
    routes/      one module per group of routes: read what is there, ask a view, answer
    access/      who somebody is: sessions, one-time links, passwords, OpenID Connect, limits
    feed.py      everything that Butler keeps, read once and followed, and its changes for the stream
    shelves.py   list items made of it, each once, in the orders that people read them in (shelf.py)
    working.py   what takes long: in a thread, once for all who ask; pool_pages.py what is kept of each pool
    sight.py     what of it a person may see; seeing.py the items of it
    shown*.py    objects as they are sent; attention.py what somebody should look at
    asking.py    live questions to tenants, in the name of the person
    acting.py    writing to Kubernetes as the person
    fencing.py   only over the version that they looked at
    audit.py     what people did: a line each, and Events
    forms.py     what people fill in, as objects; manifests.py where they write the object itself
    previews.py  what a change would do
    stream.py    the WebSocket
    answers.py   answers with an ETag, and lists page by page
    problems.py  errors as problem+json
    static.py    the console's files
    app.py       all of it put together

It keeps nothing that matters in memory: several replicas may run, and one may die at any moment. Writes go to
Kubernetes in the name of the person, so that RBAC and admission decide.
"""
