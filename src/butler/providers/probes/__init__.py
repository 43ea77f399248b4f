"""One module per provider: the few requests that show whether it takes the credentials."""
