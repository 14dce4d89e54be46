"""SQL text: the statements that concern Delta tables, parsed and executed."""
