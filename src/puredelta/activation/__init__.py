"""Activation: PySpark calls on Delta tables, replaced by calls of this package."""
