"""Real processes that write one real table: puredelta beside delta-spark and delta-rs."""
