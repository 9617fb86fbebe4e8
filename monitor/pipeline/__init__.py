"""Asks every collector once a tick and builds the snapshot."""
