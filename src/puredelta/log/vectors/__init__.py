"""Deletion vectors in storage: reading and writing them."""
