"""Tables, views and versions named in statements."""
