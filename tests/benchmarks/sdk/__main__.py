import sys

from tests.benchmarks.sdk import main

sys.exit(main(sys.argv[1:]))
