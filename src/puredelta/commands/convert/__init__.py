"""CONVERT TO DELTA: Parquet files of a directory or a catalog's table become version 0."""
