"""The Py4J edge: all access to the driver's JVM."""
