"""What the user asked a statement to do, before any schema is known (stage 1)."""
