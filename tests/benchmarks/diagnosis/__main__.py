"""`python -m tests.benchmarks.diagnosis [SCRIPT …] [--seconds N]`: what this round lacks, or those named."""

import argparse
import sys

from tests.benchmarks.diagnosis import changes, main, publish, steadiness

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("scripts", nargs="*")
parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no case after so long")
parser.add_argument("--changes", action="store_true", help="apply every change that was shown, and train")
parser.add_argument("--steadiness", action="store_true", help="the same scripts again and again")
parser.add_argument("--page", action="store_true", help="write the page of what there is")
args = parser.parse_args()
if args.changes:
    changes.check_all(tuple(args.scripts), args.seconds)
elif args.steadiness:
    steadiness.measure_all(tuple(args.scripts), args.seconds)
elif args.page:
    publish()
else:
    sys.exit(main(tuple(args.scripts), args.seconds))
