"""`python -m trainers.sequence …`; with --grid_… a run for every combination."""

from __future__ import annotations

import sys

from trainers import cli
from trainers.sequence import RECIPE, grid

if __name__ == "__main__":
    words = sys.argv[1:]
    wanted = any(word.startswith(("--grid_", "--grid-")) for word in words)
    sys.exit(grid.main(words) if wanted else cli.main(RECIPE))
