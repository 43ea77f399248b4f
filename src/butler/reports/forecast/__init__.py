"""In how many days a pool is full."""
