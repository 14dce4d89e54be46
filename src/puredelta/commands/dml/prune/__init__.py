"""Which files may hold rows of a statement, and why the others were skipped (stage 4)."""
