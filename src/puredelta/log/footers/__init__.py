"""Statistics read from Parquet footers."""
