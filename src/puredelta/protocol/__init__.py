"""The Delta protocol as immutable types and pure functions: no files, no clock, no Spark."""
