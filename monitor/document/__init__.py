"""One run, or two side by side, as a document to keep or send: HTML, Markdown, JSON."""
