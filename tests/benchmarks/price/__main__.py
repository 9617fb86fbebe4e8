import sys

from tests.benchmarks.price import main

sys.exit(main(sys.argv[1:]))
