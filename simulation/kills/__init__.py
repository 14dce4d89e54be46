"""A driver is killed, for real, at each named point of each command; the table is judged."""
