"""The report printed when a run is over."""
