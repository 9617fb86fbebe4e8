"""Automatic instrumentation: recognises the loop of an unchanged script from what torch does."""
