"""A statement in execution: its stages, progress and report."""
