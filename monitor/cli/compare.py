"""`gpumon compare A B`: is B faster, how surely, where, and as much as predicted?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from monitor.cli import catalog
from monitor.cli.table import number, seconds, share, size, table
from monitor.compare import Comparison
from monitor.errors import EXIT_FAILED, EXIT_OK, UserError
from monitor.realised import Realised
from monitor.snapshot import encode


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="the run before: id, beginning of an id, name, last or last~1")
    parser.add_argument("b", metavar="B", help="the run after")
    parser.add_argument(
        "--fail-below", type=float, metavar="R", help="exit 1 when B's rate is below R times A's (CI: 0.95)"
    )
    catalog.configure(parser)


def run(args: argparse.Namespace) -> int:
    found = catalog.open_catalog(args, write=True).compare(args.a, args.b)
    if args.json:
        sys.stdout.write(encode(found).decode() + "\n")
    else:
        print("\n".join(render(found)))
    return _exit_code(found, args.fail_below)


def _exit_code(found: Comparison, bar: float | None) -> int:
    if bar is None:
        return EXIT_OK
    if found.speedup is None:
        raise UserError("the two runs have no rate to compare: too few steps", code=EXIT_FAILED)
    if found.speedup < bar:
        print(f"gpumon: ×{found.speedup:.3f} is below the bar of ×{bar:g}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def render(found: Comparison) -> Iterator[str]:
    yield verdict(found)
    yield from (f"warning: {warning}" for warning in found.warnings)
    yield ""
    yield table(("", "A", "B", "B / A"), list(_figures(found)), right=(1, 2, 3))
    if found.phases:
        yield ""
        rows = [
            (p.name, seconds(p.before_seconds), seconds(p.after_seconds), _signed(-p.saved_seconds))
            for p in found.phases
        ]
        yield table(("a step, by phase", "A", "B", "change"), rows, right=(1, 2, 3))
    if found.realised:
        yield ""
        yield table(("gone in B", "predicted", "realised"), [_fate(one) for one in found.realised])
    for name, ids in (("still there", found.remaining), ("new in B", found.new)):
        if ids:
            yield f"{name}: {', '.join(ids)}"


def verdict(found: Comparison) -> str:
    """One sentence."""
    if found.speedup is None:
        return "no verdict: one of the runs has too few steps"
    sure = f" ({found.low:.2f}–{found.high:.2f})" if found.low is not None and found.high is not None else ""
    pace = f"×{found.speedup:.2f}{sure} in {found.unit}"
    noise = f"noise ±{found.noise_floor * 100:.1f} %"
    words = {
        "faster": f"B is faster: {pace}, {noise}",
        "slower": f"B is slower: {pace}, {noise}",
        "same": f"no difference beyond noise: {pace}, {noise}",
        "unsure": f"not sure: {pace}, {noise}; longer runs would tell",
    }
    return words[found.verdict]


def _figures(found: Comparison) -> Iterator[tuple[str, ...]]:
    a, b = found.a, found.b
    yield "run", a.run, b.run, ""
    for name, one, two, text in (
        ("samples/s", a.samples_per_second, b.samples_per_second, number),
        ("steps/s", a.steps_per_second, b.steps_per_second, number),
        ("step p50", a.step_p50_seconds, b.step_p50_seconds, seconds),
        ("step p95", a.step_p95_seconds, b.step_p95_seconds, seconds),
        ("epoch time", a.epoch_seconds, b.epoch_seconds, seconds),
        ("GPU use", a.gpu_utilization_ratio, b.gpu_utilization_ratio, share),
        ("GPU starved", a.starved_ratio, b.starved_ratio, share),
        ("GPU memory", a.device_memory_bytes, b.device_memory_bytes, size),
        ("host memory", a.rss_bytes, b.rss_bytes, size),
        ("in stalls", a.stall_share, b.stall_share, share),
        ("steps", float(a.steps), float(b.steps), number),
    ):
        yield name, text(one), text(two), f"×{two / one:.2f}" if one and two is not None else ""


def _fate(one: Realised) -> tuple[str, str, str]:
    gain = one.predicted
    promised = f"×{gain.likely:.2f} ({gain.low:.2f}–{gain.high:.2f})" if gain else "—"
    if one.realised is None:
        return one.id, promised, "went along with another" if one.applied is False else "—"
    judged = "" if one.inside is None else (" inside" if one.inside else " outside")
    return one.id, promised, f"×{one.realised:.2f}{judged}{' (its part)' if one.shared else ''}"


def _signed(value: float) -> str:
    return ("+" if value > 0 else "−" if value < 0 else "") + seconds(abs(value))
