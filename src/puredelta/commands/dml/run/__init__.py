"""A statement from its request to its outcome: the pipeline, its retries and its report."""
