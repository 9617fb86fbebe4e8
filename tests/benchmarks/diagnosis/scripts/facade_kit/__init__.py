"""Options, networks and the model of the facade translator."""
