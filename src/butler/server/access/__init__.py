"""Authentication: who a user is, how they logged in, and how often an address may try.

    guard.py       stands before every route: Host, limits, session, Origin and CSRF token, strict headers
    public_url.py  which Host, Origin and cookies are ours
    logins.py      the ways to log in, put together, and the audit of who used them
    sessions.py    who is logged in
    links.py       one-time links
    passwords.py   the local administrator
    oidc.py        an OpenID provider; provider.py asks it, id_token.py verifies what it says
    limits.py      how often an address may try
    keys.py        what the key that all replicas share is used for
    records.py     what of all this is kept, sealed; store.py opens the place and makes the key
    pages.py       the few pages that the server writes itself

A user who has logged in is a `Person` from then on (person.py). What they may do, Kubernetes decides.
"""
