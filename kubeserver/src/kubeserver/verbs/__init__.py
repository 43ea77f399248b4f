"""What is done to objects: reading, watching, writing, deleting, and the life of their metadata."""
