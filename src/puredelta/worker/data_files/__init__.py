"""New data files, and data files written again with only their changed row groups encoded."""
