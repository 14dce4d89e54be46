"""Activation: PySpark calls that mean a Delta table, replaced by calls of this package."""
