"""Definitions of tables: the columns, properties and protocol that commands give them."""
