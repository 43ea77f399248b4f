"""Asking admission webhooks: which, how, and what they said."""
