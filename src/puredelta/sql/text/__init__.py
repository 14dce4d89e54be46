"""Statement text: tokens, names, literals and expressions; readers step over what they return."""
