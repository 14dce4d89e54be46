"""Clients that nobody here wrote, over tables of this library."""
