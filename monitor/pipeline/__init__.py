"""Asks every collector once a tick and makes the snapshot."""
