"""MERGE, UPDATE, DELETE and replaceWhere: ten stages from a statement to its commit."""
