"""A small classification toolbox: registries, transforms, a runner."""
