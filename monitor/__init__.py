"""gpumon's daemon and its faces. `snapshot` is the currency; everything flows towards it or from it."""

__version__ = "0.1.0"
