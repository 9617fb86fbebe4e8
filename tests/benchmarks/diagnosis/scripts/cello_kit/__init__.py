"""Data, networks and losses of the cello vocoder."""
