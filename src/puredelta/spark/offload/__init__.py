"""Work that Spark's Python workers do: key lookups, copies and rewrites."""
