"""Commands that read the log alone: they need neither Spark nor Java, and start fast."""
