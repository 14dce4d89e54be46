"""Writes of a DataFrame, each as one Spark job and one commit."""
