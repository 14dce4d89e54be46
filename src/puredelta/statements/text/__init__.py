"""Statement text: tokens, names, literals and expressions."""
