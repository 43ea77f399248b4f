"""Objects as they are sent. Pure: what is known goes in, what is sent comes out.

Lists, details and the live stream all show an object with these functions, so they cannot disagree.
`attention.py` lists what of it all needs attention.
"""
