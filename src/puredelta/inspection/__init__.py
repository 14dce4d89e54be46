"""Checks and descriptions of a table, an environment or a script, without Spark."""
