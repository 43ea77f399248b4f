"""What is kept between requests, so that none has to wait. All of it can be lost: it is read from Kubernetes again.

    feed.py        everything that Butler has in Kubernetes, read once and followed
    shelves.py     list items made of it, each once, in the orders that people read them in (shelf.py)
    pool_pages.py  what was counted of each pool, and the pages that are made of it
    heard.py       what clients know already must be in what they are shown
    working.py     what takes long: in a thread, once for all who ask

Nothing in here knows who asks: whoever shows some of it asks first what they may see.
"""
