"""`gpumon profile RUN`: make a running job record a torch.profiler window, then diagnose it."""

from __future__ import annotations

import argparse
import contextlib
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from monitor.cli import run_source, trace
from monitor.model import settings
from monitor.model.errors import EXIT_FAILED, UserError
from monitor.model.run import Run
from monitor.model.snapshot import encode
from monitor.model.units import duration
from monitor.runs.profile_request import ProfileRequest, Standing, make_wish
from monitor.traces import Trace, read

STEPS, MOST_STEPS = 5, 1000
TIMEOUT = 300
"""Chosen: seconds to wait for an answer."""
LOOK_EVERY = 0.1
ENDED = ("ended", "failed", "killed")
PERFETTO = "https://ui.perfetto.dev"
NO_DEVICE = (
    "The trace has no device work: this run computes on the CPU. `gpumon show` says where its time goes; "
    f"{PERFETTO} shows the operators."
)


class Answer(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    run: str
    files: tuple[str, ...]
    diagnosis: trace.Answer | None
    """None: the traces contain no device work."""
    schema: int = 1


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id, beginning of an id, name, or last")
    parser.add_argument("--steps", type=_steps, default=STEPS, metavar="N", help=f"default {STEPS}")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="trace file, .json or .json.gz")
    parser.add_argument("--rank", type=int, metavar="N", help="this rank only (default: all on this machine)")
    parser.add_argument("--stacks", action="store_true", help="Python stacks too; slows these steps further")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=TIMEOUT,
        metavar="S",
        help=f"give up after (default {TIMEOUT})",
    )
    run_source.configure(parser)
    parser.epilog = "only for the run's owner or root; exit code 1 when the run refuses or does not answer"


def run(args: argparse.Namespace) -> int:
    with run_source.open_runs(args) as source:
        found = source.record(args.run).run
    rings = _rings(found, settings.load(args).dir, args.rank)
    files = _files(args.output, found, list(rings))
    with _until_terminated(), contextlib.ExitStack() as stack:
        asked = [_asked(path, rank, stack) for rank, path in rings.items()]
        _place(asked, args, found)
        _wait(asked, args.timeout)
        for request in asked:
            _fetch(request, files[request.rank])
    return _tell(found, [str(files[request.rank]) for request in asked], as_json=args.json)


# ── which ranks ──


def _rings(found: Run, folders: Sequence[Path], wanted: int | None) -> dict[int, Path]:
    """Rank → its ring, for the ranks on this machine."""
    ranks = sorted({one.rank for one in found.ranks})
    if found.state in ENDED:
        raise UserError(f"run {found.id} is over; only a running one can be profiled")
    if wanted is not None and wanted not in ranks:
        raise UserError(f"run {found.id} has no rank {wanted}", hint=f"it has {', '.join(map(str, ranks))}")
    claimed = found.id.partition("@")[0]
    places = {
        rank: path
        for rank in ranks
        for folder in folders
        if wanted in (None, rank) and (path := folder / f"{claimed}.{rank}.ring").exists()
    }
    if not places:
        raise UserError(
            f"no ring of run {found.id} is on this machine in {', '.join(map(str, folders))}",
            hint=f"ask on the machine it runs on ({found.hostname}), or name the folder with --dir",
        )
    return places


def _files(output: Path | None, found: Run, ranks: Sequence[int]) -> dict[int, Path]:
    """Rank → its trace file; readers take the rank from the name."""
    base = output or Path(f"{found.name}-{time.strftime('%H%M%S')}.json.gz")
    if not base.name.endswith((".json", ".json.gz")):
        raise UserError(f"{base} is not a trace file name", hint="it ends with .json or .json.gz")
    if not base.parent.is_dir():
        raise UserError(f"there is no folder {base.parent}")
    if len(ranks) == 1:
        return {ranks[0]: base}
    stem, dot, rest = base.name.partition(".json")
    return {rank: base.with_name(f"{stem}-rank{rank}{dot}{rest}") for rank in ranks}


def _asked(path: Path, rank: int, stack: contextlib.ExitStack) -> ProfileRequest:
    request = ProfileRequest(path, rank)
    stack.callback(request.close)
    return request


# ── asking ──


def _place(asked: Sequence[ProfileRequest], args: argparse.Namespace, found: Run) -> None:
    """All ranks record the same steps, so that their collectives can be compared."""
    wish = make_wish(asked, found.step.p50, steps=args.steps, stacks=args.stacks, timeout=args.timeout)
    for request in asked:
        request.place(wish)
    print(f"gpumon: asked {_ranks(asked)} for {args.steps} steps; Ctrl-C withdraws it", file=sys.stderr)


def _wait(asked: Sequence[ProfileRequest], timeout: float) -> None:
    """Wait until all have written. Raises `UserError` if one refuses, dies, or does not answer in time."""
    deadline = time.monotonic() + timeout
    before = {request.rank: request.steps for request in asked}
    shown: dict[int, str] = {}
    while True:
        standings = {request.rank: request.standing() for request in asked}
        for rank, standing in standings.items():
            _show(rank, standing, shown)
        if all(standing.state == "written" for standing in standings.values()):
            return
        if time.monotonic() > deadline:
            raise _too_late(standings, before, timeout)
        time.sleep(LOOK_EVERY)


def _show(rank: int, standing: Standing, shown: dict[int, str]) -> None:
    if standing.state in ("refused", "gone"):
        raise UserError(f"no trace of rank {rank}: {standing.reason}", code=EXIT_FAILED)
    if shown.get(rank) != standing.state:
        shown[rank] = standing.state
        if standing.state != "requested":
            print(f"gpumon: rank {rank}: {standing.state}", file=sys.stderr)


def _too_late(standings: dict[int, Standing], before: dict[int, int], timeout: float) -> UserError:
    late = [rank for rank, standing in standings.items() if standing.state != "written"]
    rank = late[0]
    if standings[rank].steps == before[rank]:
        why = "it has not finished a step since it was asked, and checks for requests only after a step"
    elif standings[rank].state == "taking":
        why = "it is still in the window"
    else:
        why = "it has not seen the request"
    return UserError(
        f"rank {rank} has no trace after {duration(timeout)}: {why}",
        hint="the request was withdrawn; --timeout waits longer",
        code=EXIT_FAILED,
    )


def _fetch(request: ProfileRequest, target: Path) -> None:
    try:
        request.fetch(target)
    except OSError as error:
        raise UserError(f"cannot write {target}: {error.strerror}") from error


@contextlib.contextmanager
def _until_terminated() -> Iterator[None]:
    """SIGTERM withdraws the request, as Ctrl-C does."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# ── the answer ──


def _tell(found: Run, files: Sequence[str], *, as_json: bool) -> int:
    traces = [read(file) for file in files]
    diagnosis = trace.judge(traces) if _with_device(traces) else None
    if as_json:
        sys.stdout.write(encode(Answer(found.id, tuple(files), diagnosis)).decode() + "\n")
        return 0
    print("\n".join(f"wrote {file}" for file in files))
    print(f"\n{trace.text(diagnosis) if diagnosis else NO_DEVICE}")
    return 0


def _with_device(traces: Sequence[Trace]) -> bool:
    return all(one.work for one in traces)


def _ranks(asked: Sequence[ProfileRequest]) -> str:
    numbers = ", ".join(str(request.rank) for request in asked)
    return f"rank {numbers}" if len(asked) == 1 else f"ranks {numbers}"


def _number(kind: Callable[[str], float], text: str, low: float, high: float, what: str) -> Any:
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(what)
    return value


def _steps(text: str) -> int:
    return int(_number(int, text, 1, MOST_STEPS, f"a number of steps from 1 to {MOST_STEPS}"))


def _seconds(text: str) -> float:
    return float(_number(float, text, 1, 86400, "seconds, from 1 to 86400"))
