"""Activation: a stock session takes format ``delta`` in readers, writers and SQL text.

Only the doors are here: which calls are ours, and how they are handed on. What a command
does is the business of the layers below.
"""
