"""What a MERGE, UPDATE, DELETE or replaceWhere will do, would do or did, as a report."""
