"""Footers of Parquet files as bytes: a reader of Thrift, and the check before Arrow reads them."""
