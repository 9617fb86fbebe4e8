"""The two widgets that draw everything, and the graphs in them."""
