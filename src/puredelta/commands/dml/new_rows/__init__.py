"""The new rows of a statement as a frame, or as rows of the source (stage 7)."""
