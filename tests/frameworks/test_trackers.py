"""`gpumon track` with the real TensorBoard, W&B and MLflow, offline. They are large and not among what `make
test` installs: without one its tests skip. `python -m tests.frameworks` makes an environment with them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE
from tests.frameworks.environment import FOLDER, ROOT

TRAIN = """
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(300):
    loss = model(torch.ones(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 10 == 0:
        LOG
"""
SCRIPTS = {
    "tensorboard": ("from torch.utils.tensorboard import SummaryWriter\nwriter = SummaryWriter('logs')\n",
                    "writer.add_scalar('loss', loss, step)", "writer.close()"),
    "wandb": ("import wandb\nrun = wandb.init(project='mine', mode='offline')\n",
              "run.log({'loss': loss.item()})", "run.finish(); print(run.id)"),
    "mlflow": ("import mlflow\nmlflow.set_tracking_uri('mine')\nrun = mlflow.start_run()\n",
               "mlflow.log_metric('loss', loss.item(), step)", "mlflow.end_run(); print(run.info.run_id)"),
}  # fmt: skip
"""Library → before, in and behind the loop of a script that uses it."""
READERS = {
    "tensorboard": """
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator("logs"); found.Reload()
tags = found.Tags()
answer = {"names": tags["scalars"], "own": len(found.Scalars("loss")), "texts": tags["tensors"]}
""",
    "wandb": """
from wandb.proto import wandb_internal_pb2
names, texts, own = set(), set(), 0

def records(data, block=32768, at=7, whole=b""):
    # LevelDB's log format behind seven bytes of W&B's own: checksum, length and kind, then the piece
    while at + 7 <= len(data):
        if block - at % block < 7:
            at += block - at % block
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        whole, at = whole + data[at + 7 : at + 7 + length], at + 7 + length
        if kind in (1, 4):  # the only or the last piece
            yield whole
            whole = b""

for path in sorted(pathlib.Path("wandb").glob("offline-run-*/*.wandb")):
    for data in records(path.read_bytes()):
        record = wandb_internal_pb2.Record(); record.ParseFromString(data)
        own += record.WhichOneof("record_type") == "history"
        names |= {item.key or "/".join(item.nested_key) for item in record.summary.update}
        texts |= {item.path for item in record.files.files if list(path.parent.glob("files/" + item.path))}
answer = {"names": sorted(names), "own": own, "texts": sorted(texts)}
""",
    "mlflow": """
from mlflow.tracking import MlflowClient
client = MlflowClient("mine")
run = client.get_run(sys.argv[1])
answer = {"names": sorted(run.data.metrics), "own": len(client.get_metric_history(sys.argv[1], "loss")),
          "texts": sorted(run.data.tags) + [one.path for one in client.list_artifacts(sys.argv[1])],
          "status": run.info.status}
""",
}


def python_with(library: str) -> str:
    """The first Python that has it: the one named, the one of `python -m tests.frameworks`, ours. One that
    has it and cannot import it is not passed over."""
    given = os.environ.get("GPUMON_FRAMEWORKS_PYTHON")
    for python in filter(None, (given, str(FOLDER / "bin" / "python"), sys.executable)):
        code = f"import importlib.util as u, sys; sys.exit(u.find_spec({library!r}) is None)"
        if Path(python).exists() and not subprocess.run([python, "-c", code], capture_output=True).returncode:
            return python
    pytest.skip(f"{library} is not installed: `python -m tests.frameworks` makes an environment that has it")


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUMON", "MLFLOW"))}
    own = {"GPUMON_DIR": str(folder / "rings"), "GPUMON_STORE": str(folder / "history.db")}
    own["MLFLOW_ALLOW_FILE_STORE"] = "true"  # mlflow-skinny has no other store
    return {**kept, **own, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HOME": str(folder)}


def run(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    (folder / "rings").mkdir(exist_ok=True)
    done = subprocess.run(
        words, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == code, done.stderr
    return done


def trained(folder: Path, python: str, library: str, *options: str) -> subprocess.CompletedProcess[str]:
    before, log, behind = SCRIPTS[library]
    (folder / "train.py").write_text(before + TRAIN.replace("LOG", log) + behind)
    gpumon = (sys.executable, "-m", "monitor.cli.main", "run", "--no-summary", *options, "--")
    return run(folder, *gpumon, python, "train.py")


def read(folder: Path, python: str, library: str, *words: str) -> dict[str, Any]:
    code = f"import json, pathlib, sys\n{READERS[library]}\nprint(json.dumps(answer))"
    found: dict[str, Any] = json.loads(run(folder, python, "-c", code, *words).stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("library", SCRIPTS)
def test_a_script_finds_its_figures_in_its_own_tracker(library: str, tmp_path: Path) -> None:
    """GIVEN a script that logs WHEN it is run with --track THEN the run it logged to has gpumon's figures and
    findings, and every value of its own."""
    python = python_with(library)
    done = trained(tmp_path, python, library, "--track")
    assert "not written" not in done.stderr and "gpumon: " in done.stderr, done.stderr
    found = read(tmp_path, python, library, *done.stdout.split()[-1:])
    assert found["own"] == 30
    assert any(name.startswith("gpumon/steps_per_second") for name in found["names"])
    assert any("phase/forward_ratio" in name for name in found["names"])
    assert any("gpumon" in text for text in found["texts"])
    assert found.get("status", "FINISHED") == "FINISHED"


def test_without_the_option_nothing_is_written(tmp_path: Path) -> None:
    python = python_with("tensorboard")
    trained(tmp_path, python, "tensorboard", "--json", "report.json")
    assert not [name for name in read(tmp_path, python, "tensorboard")["names"] if "gpumon" in name]
    said = run(tmp_path, sys.executable, "-m", "monitor.cli.main", "track", "--python", python).stderr
    assert said == f"gpumon: TensorBoard: {tmp_path / 'logs'}\n"
    assert [name for name in read(tmp_path, python, "tensorboard")["names"] if "gpumon" in name]
