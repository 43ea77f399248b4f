"""What a NetworkPool hands out, to whom, and what it says about itself. Pure."""
