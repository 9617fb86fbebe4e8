"""The SDK against the real frameworks: ``python -m tests.frameworks [NAME …]`` writes docs/frameworks.md.

Not part of `make test` (the frameworks are large). Each one trains in a process of its own, once with
automatic instrumentation and, where gpumon has a callback for it, once with that. Both are compared with
clock stamps that the same process takes at the framework's own functions (`reference.py`).
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sdk import ring
from sdk.statistics import NOT_STEADY
from tests.frameworks.environment import ROOT, python_with_frameworks, version
from tests.frameworks.reference import Reference, shares
from tests.frameworks.report import Result, write
from tests.frameworks.torchvision_operators import declare
from tests.rings import RingFile, trainer_rings

PROGRAMS = {
    "lightning": ("lightning", "lightning_fit", True),
    "transformers": ("transformers", "hf_trainer", True),
    "accelerate": ("accelerate", "accelerate_loop", False),
    "timm": ("timm", "timm_images", False),
    "stable_baselines3": ("stable-baselines3", "sb3_ppo", False),
    "torch_geometric": ("torch-geometric", "geometric_graph", False),
    "ultralytics": ("ultralytics", "ultralytics_yolo", False),
    "fastai": ("fastai", "fastai_learner", False),
    "skorch": ("skorch", "skorch_net", False),
}
"""Framework → its distribution, the program, whether gpumon has a callback for it."""


def main(chosen: list[str]) -> int:
    python = python_with_frameworks()
    results = []
    for name in chosen or list(PROGRAMS):
        distribution, program, has_callback = PROGRAMS[name]
        for way in ("auto", "callback") if has_callback else ("auto",):
            result = run(python, name, program, way)
            result.version = version(python, distribution)
            results.append(result)
            print(result.line(), flush=True)
    if not chosen:
        write(results)
    return 0 if all(result.agrees for result in results) else 1


def run(python: Path, name: str, program: str, way: str) -> Result:
    """One training in a process of its own, and what its ring says beside the stamps."""
    with tempfile.TemporaryDirectory() as folder:
        stamps = Path(folder) / "stamps.json"
        env = {**os.environ, "GPUMON_DIR": folder, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        if way == "auto":
            env |= {"PYTHONPATH": f"{ROOT / 'sdk' / 'autostart'}{os.pathsep}{ROOT}", "GPUMON_AUTO": "1"}
        command = [str(python), "-m", "tests.frameworks", "--inside", program, str(stamps), way]
        done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=600)
        if done.returncode:
            return Result(name, way, failure=(done.stderr.strip() or "no output").splitlines()[-1])
        rings = trainer_rings(Path(folder))
        if len(rings) != 1:
            return Result(name, way, failure=f"{len(rings)} runs instead of one")
        return compare(name, way, rings[0], json.loads(stamps.read_text()))


def compare(name: str, way: str, found: RingFile, seen: dict[str, Any]) -> Result:
    """Over the steady steps; not the last one, whose end is the end of the training."""
    records = [one for one in found.records[:-1] if not one.flags & NOT_STEADY]
    total = sum(one.seconds for one in records)
    spent: dict[str, float] = {}
    for record in records:
        for phase, seconds in record.phases.items():
            spent[phase] = spent.get(phase, 0.0) + seconds
    times = [(one.words[ring.W_BEGIN], one.words[ring.W_END]) for one in records]
    return Result(
        name,
        way,
        steps=found.header.head,
        updates=seen["updates"],
        framework=found.meta.get("framework"),
        ours={phase: seconds / total for phase, seconds in spent.items()},
        reference=shares(seen["stamps"], times),
    )


def inside(program: str, stamps: str, way: str) -> None:
    declare()
    reference = Reference()
    importlib.import_module(f"tests.frameworks.programs.{program}").train(reference, way == "callback")
    reference.save(Path(stamps))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
