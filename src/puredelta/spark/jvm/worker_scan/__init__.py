"""Relations that Python workers read, of which Spark's planner chooses columns and rows."""
