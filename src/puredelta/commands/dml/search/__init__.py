"""Which rows of which files a statement acts on (stage 5)."""
