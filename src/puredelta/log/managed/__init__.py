"""Logs of catalog-managed tables: a catalog names their versions and ratifies their commits."""
