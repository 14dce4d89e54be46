"""The log of schemas of a stream, by which it follows renamed, dropped and wider columns."""
