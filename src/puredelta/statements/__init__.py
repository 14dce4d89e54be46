"""SQL statements on Delta tables, parsed and executed."""
