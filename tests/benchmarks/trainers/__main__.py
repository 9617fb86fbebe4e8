"""`python -m tests.benchmarks.trainers [recipe …]`."""

from __future__ import annotations

import sys

from tests.benchmarks.trainers import main

sys.exit(main(sys.argv[1:]))
