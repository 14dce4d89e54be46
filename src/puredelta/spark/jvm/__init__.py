"""The Py4J edge: everything that touches the driver's JVM."""
