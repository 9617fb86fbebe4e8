"""Draws panels with matplotlib, as close to their meaning as a still picture allows."""
