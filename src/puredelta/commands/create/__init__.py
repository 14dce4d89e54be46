"""CREATE and REPLACE TABLE: a definition becomes a table, with or without its first rows."""
