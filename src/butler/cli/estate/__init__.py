"""What commands read of the estate and ask of tenants: with whose permissions, in which order, and how often."""
