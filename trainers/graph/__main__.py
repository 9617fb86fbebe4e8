"""`python -m trainers.graph …`."""

from __future__ import annotations

import sys

from trainers import cli
from trainers.graph import RECIPE

if __name__ == "__main__":
    sys.exit(cli.main(RECIPE))
