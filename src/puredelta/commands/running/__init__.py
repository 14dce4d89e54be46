"""A statement while it runs: its stages, their times, log lines, progress and spans."""
