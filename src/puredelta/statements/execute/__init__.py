"""Execution of statements by commands."""
