"""The commands, one module for each group; a module is imported when one of its commands is called."""
