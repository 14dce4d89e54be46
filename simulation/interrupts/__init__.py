"""Statements are interrupted as by Ctrl-C, at random moments; table and session are judged."""
