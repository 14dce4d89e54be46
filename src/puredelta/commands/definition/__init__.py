"""What a table is by its definition: the columns, properties and protocol that commands give it."""
