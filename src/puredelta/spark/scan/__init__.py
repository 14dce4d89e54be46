"""The data files of a table as rows of a DataFrame."""
