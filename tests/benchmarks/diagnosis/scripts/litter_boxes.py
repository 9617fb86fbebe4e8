"""Litter on the beach: a one-stage detector with anchors, a project of several files."""

from litter_kit.engine import train
from litter_kit.options import parse

if __name__ == "__main__":
    train(parse())
