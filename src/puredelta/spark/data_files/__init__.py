"""The two ways to data files, Spark and Arrow, and how workers reach them."""
