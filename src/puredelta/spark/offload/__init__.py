"""Work of Spark's Python workers: key lookups, copies and rewrites."""
