"""The configuration probe: the settings in use, read once and refreshed every second (docs/probe.md)."""
