"""Code for executors, shipped by value with tasks: standard library, numpy, pyarrow, obstore."""
