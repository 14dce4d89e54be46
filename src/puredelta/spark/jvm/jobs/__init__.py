"""Spark jobs of a classic session while they run, as Spark's status tracker knows them."""
