"""The routes: each reads what is there, asks a view, and answers. One module per group."""
