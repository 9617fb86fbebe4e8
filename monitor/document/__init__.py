"""A run, or two runs side by side, as a document to keep and to send: HTML, Markdown, JSON."""
