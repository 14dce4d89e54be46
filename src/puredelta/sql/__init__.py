"""Statement text: which statements are ours, and what they ask for."""
