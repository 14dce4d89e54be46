"""SQL text: which statements concern Delta tables, what they ask for, and their execution."""
