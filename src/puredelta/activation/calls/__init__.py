"""Calls of PySpark that mean Delta, as commands of our own."""
