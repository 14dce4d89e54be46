"""Rows of data files in the columns of the table, many small files decoded as one."""
