"""CREATE and REPLACE TABLE: a table from a definition, with or without its first rows."""
