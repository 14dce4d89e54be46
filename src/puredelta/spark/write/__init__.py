"""Rows of a DataFrame as new Parquet files: of a table, or staged for one command."""
