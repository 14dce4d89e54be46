"""What a statement will do, would do or did: one frozen value, as text, Markdown, HTML and JSON."""
