"""The version of the server; pyproject.toml reads it from here."""

__version__ = "0.1.0"
