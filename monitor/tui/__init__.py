"""The terminal screens: a Textual app that lays out snapshots and computes no figure of its own."""
