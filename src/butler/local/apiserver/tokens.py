"""Tokens of service accounts: signed claims that say which account, in which logical cluster, until when."""
