"""What MERGE, UPDATE and DELETE share: from a resolved statement to the commit of its rows."""
