"""What is kept between requests, so that none has to wait. All of it can be lost: it is read from Kubernetes again.

    cluster_state.py     all of Butler's objects in Kubernetes, listed once and watched
    list_items.py        list items made of them, each once, in the orders that lists are read in (sorted_list.py)
    pool_summaries.py    a summary of each pool, and the responses that are made of it
    pool_forecasts.py    when each pool will be full, for a minute
    estate_overlaps.py   addresses that pools or allocations share and should not
    read_your_writes.py  what a client has been told is in every later response to it
    background_work.py   work that takes long: in a thread, once for all clients that wait for it

Nothing in here knows who asks, and nothing in here calls a route: routes check permissions, then read from here.
"""
