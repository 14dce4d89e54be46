"""From a statement to the command that executes it."""
