"""``python -m docs.tools.grafana_preview --prometheus URL --out DIR``: each dashboard as one picture."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from docs.tools.grafana_preview.answers import Prometheus, Span
from docs.tools.grafana_preview.sheet import write
from grafana.build import HERE


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.tools.grafana_preview", description=__doc__)
    parser.add_argument("--prometheus", required=True, metavar="URL")
    parser.add_argument("--out", type=Path, default=Path("out/dashboards"))
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", default="1m", help="what $__rate_interval is (four scrape intervals)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="value of a variable"
    )
    args = parser.parse_args(arguments)
    now = time.time()
    span = Span(now - 60 * args.minutes, now, max(1.0, args.minutes * 60 / 240), args.rate)
    values = dict(pair.split("=", 1) for pair in args.set)
    for path in write(args.out, Prometheus(args.prometheus), span, dict.fromkeys(_names(), values)):
        print(path)
    return 0


def _names() -> list[str]:
    return sorted(path.stem for path in (HERE / "json").glob("*.json"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
