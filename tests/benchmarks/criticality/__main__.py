"""`python -m tests.benchmarks.criticality`."""

import sys

from tests.benchmarks.criticality import main

sys.exit(main(sys.argv[1:]))
