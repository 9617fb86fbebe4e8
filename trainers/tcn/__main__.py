"""`python -m trainers.tcn …`."""

from __future__ import annotations

import sys

from trainers import cli
from trainers.tcn import RECIPE

if __name__ == "__main__":
    sys.exit(cli.main(RECIPE))
