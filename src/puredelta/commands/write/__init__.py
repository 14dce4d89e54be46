"""Writes of a DataFrame: rows, options and a mode become one Spark job and one commit."""
