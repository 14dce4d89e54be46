"""CONVERT TO DELTA: the Parquet files of a directory become version 0 of a table."""
