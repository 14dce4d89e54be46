"""What executors run, shipped by value with tasks: standard library, numpy, pyarrow, obstore."""
