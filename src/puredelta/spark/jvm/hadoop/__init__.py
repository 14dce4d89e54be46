"""Hadoop file systems of the session, as stores."""
