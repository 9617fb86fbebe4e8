"""Boxes, network and engine of the litter detector."""
