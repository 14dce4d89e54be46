"""Footers as bytes."""
