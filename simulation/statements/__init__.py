"""What writers do: payments, maintenance and the making of the table."""
