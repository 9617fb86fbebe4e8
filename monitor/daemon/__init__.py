"""The long-running process: ticks, serves, and shuts down in order."""
