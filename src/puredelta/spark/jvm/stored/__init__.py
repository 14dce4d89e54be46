"""Text that Spark keeps or runs by itself: views of the catalog, and scripts."""
