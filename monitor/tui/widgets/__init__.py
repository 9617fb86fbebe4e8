"""The two widgets everything is drawn with, and the graphs in them."""
