"""From the listing of a log to the snapshot of a version."""
