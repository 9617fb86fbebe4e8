"""Automatic instrumentation: recognizes the loop of an unchanged script from what torch does."""
