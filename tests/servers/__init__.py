"""Servers that tests start: ordinary processes of this machine, without containers or accounts."""
