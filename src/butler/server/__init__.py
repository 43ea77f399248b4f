"""The server: REST, a live stream, and the console's files, for people in browsers.

    models/        what is sent and taken
    routes/        one module per group of routes: read what is there, ask a view, answer
    access/        who somebody is: sessions, one-time links, passwords, OpenID Connect, limits
    keeping/       what is kept between requests: all that Butler has in Kubernetes, and what was made of it
    shown/         objects as they are sent
    writing/       changing something in the name of the person: forms, previews, fences, audit
    sight.py       what a person may see; visible.py the objects and items, as far as they may
    asking.py      live questions to tenants, in the name of the person
    stream.py      the live stream: stream_items.py what it tells, stream_sight.py to whom, changes.py what it told
    answers.py     answers with an ETag, and lists page by page; opaque.py what clients carry from one to the next
    problems.py    errors as problem+json
    parameters.py  parameters that many routes take
    parts.py       what every route may use
    documented.py  what routes have in common in the OpenAPI document; openapi.py writes it
    static.py      the console's files
    app.py         all of it put together; running.py serves it, with the certificate of certificate.py

It keeps nothing that matters in memory: several replicas may run, and one may die at any moment. Writes go to
Kubernetes in the name of the person, so that RBAC and admission decide.
"""
