"""commands/convert layer."""
