"""Streaming sources that are Python objects, and frames that Spark's engine takes for batches."""
