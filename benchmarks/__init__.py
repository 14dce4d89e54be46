"""Merges and conversions through several engines, side by side; ``make bench`` runs it."""
