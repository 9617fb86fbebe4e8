"""`python -m trainers.tom500 …`."""

from __future__ import annotations

import sys

from trainers import cli
from trainers.tom500 import RECIPE

if __name__ == "__main__":
    sys.exit(cli.main(RECIPE))
