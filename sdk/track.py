"""Writes a run's figures and findings into the tracker runs its script logged to. Run by path with a Python
that has those libraries (`gpumon track`), after the training; reads JSON, prints a line of JSON for each.

Nothing a script has logged is changed: figures get their own names and go, in TensorBoard, to a separate
file; in W&B, to the summary and a file; in MLflow, to metrics, tags and an artifact.
"""

from __future__ import annotations

import os
import sys

if sys.path[:1] == [os.path.dirname(os.path.abspath(__file__))]:
    del sys.path[0]  # modules here share names with the standard library

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPORT = "gpumon-report.html"
Told = dict[str, Any]
"""What to write: `figures`, `points` (of `step`, `time`, `figures`), `texts`, `markdown`, `html`."""


def tensorboard(target: dict[str, Any], told: Told) -> str:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(target["log_dir"], filename_suffix=".gpumon") as writer:
        for point in told["points"]:
            for name, value in point["figures"].items():
                writer.add_scalar(name, value, point["step"], point["time"])
        for name, value in told["figures"].items():
            writer.add_scalar(f"{name} of the run", value, told["steps"])
        writer.add_text("gpumon/report", told["markdown"], told["steps"])
    return str(target["log_dir"])


def wandb(target: dict[str, Any], told: Told) -> str:
    """Reopen the run and close it as it ended; its history is not touched."""
    import wandb as library

    quiet = library.Settings(console="off", x_disable_stats=True, x_disable_meta=True, silent=True)
    run = library.init(
        id=target["id"],
        project=target["project"],
        entity=target["entity"],
        dir=target["root"],
        resume="allow",
        mode="offline" if target["offline"] else "online",
        settings=quiet,
    )
    run.summary.update(told["figures"] | told["texts"])
    report = Path(run.dir) / REPORT  # an offline run is uploaded from there later
    report.write_text(told["html"], encoding="utf-8")
    run.save(str(report), base_path=run.dir, policy="now")
    run.finish(exit_code=1 if told["failed"] else 0)
    return f"{target['project']}/{target['id']}"


def mlflow(target: dict[str, Any], told: Told) -> str:
    """The environment's address takes precedence: the one noted with the run contains no password."""
    from mlflow.entities import Metric, RunTag
    from mlflow.tracking import MlflowClient

    client, run = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI") or target["uri"]), target["run_id"]
    points = [*told["points"], {"figures": told["figures"], "step": told["steps"], "time": told["ended"]}]
    for point in points:
        at = int(point["time"] * 1000)
        metrics = [Metric(name, value, at, point["step"]) for name, value in point["figures"].items()]
        client.log_batch(run, metrics=metrics)
    tags = [RunTag(name.replace("/", "."), text) for name, text in told["texts"].items()]
    client.log_batch(run, tags=tags)
    client.log_text(run, told["html"], REPORT)
    return str(run)


WRITERS: dict[str, Callable[[dict[str, Any], Told], str]] = {
    "tensorboard": tensorboard,
    "wandb": wandb,
    "mlflow": mlflow,
}


def write(kind: str, target: dict[str, Any], told: Told) -> dict[str, str]:
    try:
        return {"tracker": kind, "where": WRITERS[kind](target, told)}
    except Exception as error:  # noqa: BLE001 — if one library raises, the other trackers are still written
        reason = str(error).strip().splitlines() or [""]
        return {"tracker": kind, "error": f"{type(error).__name__}: {reason[0]}"}


def main() -> None:
    asked = json.load(sys.stdin)
    os.chdir(asked["folder"])
    answer, sys.stdout = sys.stdout, sys.stderr  # libraries print, too
    for kind in WRITERS:
        for target in asked["trackers"].get(kind, []):
            print(json.dumps(write(kind, target, asked)), file=answer, flush=True)


if __name__ == "__main__":
    main()
