"""The Delta protocol as types and pure functions: no files, no clock, no Spark.

One module and one immutable type per concept of the protocol document.
"""
