"""The long-running process: ticks, serves, ends in order."""
