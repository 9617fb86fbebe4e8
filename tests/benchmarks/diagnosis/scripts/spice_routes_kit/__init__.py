"""A knowledge graph of trade, its embedding, and the training."""
