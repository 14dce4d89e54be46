"""How one bucket or container is reached, from settings as users of Spark have them."""
