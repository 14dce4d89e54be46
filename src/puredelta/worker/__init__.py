"""What executors run, shipped by value with each task: standard library, numpy and pyarrow only."""
