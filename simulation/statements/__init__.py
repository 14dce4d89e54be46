"""What writers do: payments, upkeep and the making of the table."""
