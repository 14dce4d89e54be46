"""Names and types of a statement's expressions, as Spark's analyzer resolves them."""
