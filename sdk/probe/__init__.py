"""The configuration probe: what is configured, read once and refreshed once a second (docs/probe.md)."""
