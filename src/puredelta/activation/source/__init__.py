"""The Python data source that PySpark's streams and plain readers find."""
