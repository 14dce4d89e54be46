"""Table features, table properties and what they require."""
