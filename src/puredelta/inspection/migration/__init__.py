"""Calls of a script written for delta-spark that mean something else here."""
