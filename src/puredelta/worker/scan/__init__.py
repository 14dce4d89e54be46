"""Rows of data files in the columns that a table has by now."""
