"""What every other package depends on: the snapshot, settings, clock, errors, units."""
