"""What can be said of a table, an environment or a script without Spark, and what mends it."""
