"""What several commands share. Every other module here is named after its command."""
