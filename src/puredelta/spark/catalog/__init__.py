"""Tables and views of Spark's catalog, and its cached frames."""
