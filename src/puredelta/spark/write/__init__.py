"""Rows of a DataFrame as new Parquet files."""
