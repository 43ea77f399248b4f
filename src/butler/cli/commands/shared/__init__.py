"""What commands use and is no command itself. Every module outside of this folder is named after its command."""
