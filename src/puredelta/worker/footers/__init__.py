"""Footers of Parquet files as bytes: what Thrift says, and whether Arrow may look at them."""
