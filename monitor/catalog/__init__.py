"""Live and past runs as one list."""
