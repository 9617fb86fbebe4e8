"""`make fuzz`: odd calls to the C core, built with the address and undefined-behaviour sanitizers.

    python -m tests.faults.fuzz_core [--calls 200000] [--seed 1] [--record]

The same build also runs the tests that compare it with the Python core, record by record.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from sdk.core import plain
from tests.faults import page
from tests.faults.people import ROOT

SOURCES = sorted(map(str, Path(plain.__file__).parent.glob("*.c")))
FLAGS = ["-O1", "-g", "-fPIC", "-shared", "-DTEST_CLOCK", "-fno-omit-frame-pointer"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def build(compiler: str, folder: Path) -> Path:
    """The core with its sanitizers. Raises `subprocess.CalledProcessError` if the compiler has none."""
    target = folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = f"-I{sysconfig.get_paths()['include']}"
    command = [compiler, *FLAGS, *SANITIZE, include, *SOURCES, "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def environment(compiler: str) -> dict[str, str]:
    """The sanitizer must be loaded first. Leaks are not checked, because Python frees little at exit."""
    asan = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
    )
    return {
        **os.environ,
        "LD_PRELOAD": os.path.realpath(asan.stdout.strip()),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT),
    }


def call_oddly(compiler: str, calls: int, seed: int) -> subprocess.CompletedProcess[str]:
    """Exit code 0: the sanitizers found nothing."""
    with tempfile.TemporaryDirectory() as folder:
        library = build(compiler, Path(folder))
        program = Path(__file__).with_name("odd_calls.py")
        return subprocess.run(
            [sys.executable, str(program), str(library), str(calls), str(seed)],
            cwd=ROOT, env=environment(compiler), capture_output=True, text=True,
        )  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="write the result into docs/reliability.md")
    chosen = parser.parse_args()
    done = call_oddly(os.environ.get("CC", "cc"), chosen.calls, chosen.seed)
    print(done.stdout, done.stderr[-5000:], sep="\n")
    if chosen.record:
        held = "nothing the sanitizers object to" if done.returncode == 0 else "**a fault**"
        page.put_row("fuzz", "odd calls of the C core, under the sanitizers", f"{chosen.calls:,}", held)
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
