"""`gpumon track RUN`: write a run's figures and findings into its script's W&B, MLflow or TensorBoard
run.

The libraries belong to the Python that trained, so a separate process does the writing (sdk/track.py). The
run itself recorded where to write; that is read only from one's own rings and history, never from a daemon.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import monitor
from monitor.catalog.dossier import Dossier, gather
from monitor.catalog.local import local_catalog
from monitor.model import settings
from monitor.model.errors import EXIT_FAILED, EXIT_OK, UserError
from monitor.model.owner import own_uid

NAMES = {"tensorboard": "TensorBoard", "wandb": "W&B", "mlflow": "MLflow"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run", metavar="RUN", nargs="?", default="last", help="id, its beginning, name or last"
    )
    parser.add_argument(
        "--python", metavar="PATH", default=sys.executable, help="a Python with the libraries (default: ours)"
    )
    parser.epilog = "exit code 1 when a tracker could not be written"
    settings.add_options(parser, ("dir", "store", "policy"))


def run(args: argparse.Namespace) -> int:
    return track(args.run, args.python, settings.load(args))


def track(wanted: str, python: str, chosen: settings.Settings) -> int:
    """Also used at the end of `gpumon run --track`."""
    with local_catalog(chosen) as catalog:
        dossier = gather(catalog, wanted)
    answers = _write(dossier, targets(dossier), python)
    for answer in answers:
        said = f"not written: {answer['error']}" if "error" in answer else answer["where"]
        print(f"gpumon: {NAMES.get(answer['tracker'], answer['tracker'])}: {said}", file=sys.stderr)
    return EXIT_FAILED if any("error" in answer for answer in answers) else EXIT_OK


def targets(dossier: Dossier) -> dict[str, Any]:
    """What the script logged to. Raises `UserError`."""
    if dossier.run.owner_uid != own_uid():
        raise UserError(f"{dossier.run.id} is another user's run", hint="only its owner can track it")
    found = dossier.run.config.get("trackers")
    if not isinstance(found, dict) or not NAMES.keys() & found.keys():
        raise UserError(
            f"{dossier.run.id} was not seen logging to TensorBoard, W&B or MLflow",
            hint="gpumon sees it in runs that it instruments by itself (gpumon run, auto(), notebooks)",
            code=EXIT_FAILED,
        )
    return found


def _write(dossier: Dossier, found: dict[str, Any], python: str) -> list[dict[str, str]]:
    from monitor.document.tracked import tracked

    asked = {**tracked(dossier), "trackers": found, "folder": found.get("folder") or "."}
    script = Path(monitor.__file__).parent.parent / "sdk" / "track.py"
    try:
        done = subprocess.run(
            [python, str(script)], input=json.dumps(asked), capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise UserError(f"{python} cannot be run: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no reason given"]
        raise UserError(f"{python}: {said[-1]}", hint="--python names one that has the libraries")
    return [json.loads(line) for line in done.stdout.splitlines()]
