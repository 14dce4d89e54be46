"""From a transaction to a commit: checks, conflicts and attempts."""
