"""Tables, views and versions that a statement names."""
