"""Commands that start a Spark session."""
