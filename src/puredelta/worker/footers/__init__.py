"""Footers of Parquet files as bytes: a reader, a writer, and the check before Arrow reads them."""
