"""Show results in the terminal: the screen of each command."""
