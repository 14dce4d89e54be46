"""PySpark's methods that are replaced, and what decides whether a call means Delta."""
