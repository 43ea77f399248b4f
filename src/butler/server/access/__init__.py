"""Who somebody is, how they came in, and how often they may try.

    guard.py      stands before every route: Host, limits, who it is, Origin and CSRF token, strict headers
    where.py      which Host, Origin and cookies are ours
    doors.py      the ways in, put together, and the audit of who used them
    sessions.py   who is in
    links.py      one-time links
    passwords.py  the local administrator
    oidc.py       an OpenID provider; provider.py asks it, id_token.py believes it or not
    limits.py     how often an address may try
    keys.py       what the key that all replicas share is used for
    records.py    what of all this is kept, sealed; store.py opens the place and makes the key
    pages.py      the few pages that the server writes itself

Whoever comes in is a `Person` from then on (person.py). What they may do, Kubernetes decides.
"""
