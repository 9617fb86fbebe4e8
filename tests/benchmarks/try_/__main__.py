"""`python -m tests.benchmarks.try_`."""

import sys

from tests.benchmarks.try_ import main

sys.exit(main(sys.argv[1:]))
