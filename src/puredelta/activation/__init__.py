"""Activation: which calls of PySpark's own classes mean a Delta table, and what they become."""
