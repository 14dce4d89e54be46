"""The values of new rows: casts, defaults, generated columns and the rules that rows must keep."""
