"""Parts of plans that the log may answer, and the plans that take their place."""
