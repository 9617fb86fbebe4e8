"""Data, model and experiment of the solar forecast."""
