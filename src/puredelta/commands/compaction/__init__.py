"""Files of a snapshot written anew in other bins or another order, without changing a row."""
