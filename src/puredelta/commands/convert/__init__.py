"""CONVERT TO DELTA: version 0 of a table from the Parquet files of a directory or catalog table."""
