"""`python -m tests.benchmarks.diagnosis [SCRIPT …]`: all cases, or those named."""

import sys

from tests.benchmarks.diagnosis import main

sys.exit(main(tuple(sys.argv[1:])))
