"""The console's server: REST, a live stream, and the console's files, for browsers.

    models/             what is sent and taken
    routes/             one module per group of routes: check permissions, read the cache, ask a report, respond
    access/             authentication: sessions, one-time links, passwords, OpenID Connect, rate limits
    cache/              what is kept between requests: all of Butler's objects, and what was made of them
    presenters/         objects as they are sent
    actions/            changing something in the name of the user: forms, previews, preconditions, audit
    stream/             the live stream: what changed, who may see it, and how it looks now
    permissions.py      what a user may see; visible_objects.py the objects and items, as far as they may
    tenant_queries.py   live questions to tenants, in the name of the user
    list_page.py        lists page by page: orders and cursors
    json_body.py        JSON as it is sent; responses.py sends it with an ETag
    cursor.py           texts that clients carry from one request to the next
    problems.py         errors as problem+json
    parameters.py       parameters that many routes take
    services.py         what every route may use
    api_docs.py         what routes have in common in the OpenAPI document; openapi.py writes it
    static.py           the console's files
    app.py              all of it put together; process.py serves it, with the certificate of certificate.py

Nothing that matters is only in memory: several replicas may run, and one may die at any moment. Writes go to
Kubernetes in the name of the user, so that RBAC and admission decide.
"""
