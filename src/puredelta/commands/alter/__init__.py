"""ALTER TABLE: properties, columns, constraints, clustering and protocol, one commit per change."""
