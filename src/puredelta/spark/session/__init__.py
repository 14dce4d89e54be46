"""Facts about a Spark session, and small values that every room of this layer uses."""
