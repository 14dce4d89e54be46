"""Many small Parquet files decoded as one."""
