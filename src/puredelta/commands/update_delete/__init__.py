"""UPDATE and DELETE: a statement without a source, in the machinery of row changes."""
