"""ALTER TABLE: changes of a table's properties, columns, constraints, clustering and protocol.

Each is one commit on top of the version it was planned for; only a new constraint reads rows.
"""
