"""CREATE and REPLACE TABLE without rows: a definition becomes protocol and metadata."""
