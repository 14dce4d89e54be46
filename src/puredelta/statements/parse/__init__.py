"""From statement text to statement values."""
