"""Damage in a table, found by comparing its log with itself and with the files."""
