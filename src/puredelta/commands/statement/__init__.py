"""One statement while it runs: its stages, progress and report."""
