import sys

from tests.benchmarks.sdk import main

sys.exit(main())
