"""What a script logs to is recorded in its ring. Real libraries: tests/frameworks/test_trackers.py."""

from __future__ import annotations

from pathlib import Path

from sdk.auto._trackers import MOST
from tests.integration.sdk.scripts import AUTO, finish, gpumon, write
from tests.rings import trainer_rings

WRITER = """
class SummaryWriter:
    def __init__(self, logdir): self.logdir = logdir
    def add_scalar(self, name, value, step): pass
"""
SCRIPT = (
    AUTO
    + """
from tensorboardX.writer import SummaryWriter
model, optimizer = net()
writers = [SummaryWriter(f"logs/{number}") for number in range(6)]
for at in range(40):
    step(model, optimizer, torch.ones(2, 4), torch.zeros(2, dtype=torch.long))
    writers[at % int(sys.argv[1])].add_scalar("loss", 1.0, at)
"""
)


def noted(tmp_path: Path, gpumon_dir: Path, writers: int) -> dict[str, object]:
    (tmp_path / "tensorboardX").mkdir()
    (tmp_path / "tensorboardX" / "__init__.py").touch()
    write(tmp_path / "tensorboardX", WRITER, "writer.py")
    done = finish(write(tmp_path, SCRIPT), gpumon_dir, str(writers), front=gpumon())
    assert done.returncode == 0, done.stderr
    (found,) = trainer_rings(gpumon_dir)
    trackers: dict[str, object] = found.meta["config"]["trackers"]
    return trackers


def test_the_folder_a_script_logs_to_is_noted(tmp_path: Path, gpumon_dir: Path) -> None:
    assert noted(tmp_path, gpumon_dir, 1) == {
        "folder": str(tmp_path),
        "tensorboard": [{"log_dir": str(tmp_path / "logs" / "0")}],
    }


def test_of_many_only_some(tmp_path: Path, gpumon_dir: Path) -> None:
    found = noted(tmp_path, gpumon_dir, 6)["tensorboard"]
    assert found == [{"log_dir": str(tmp_path / "logs" / str(number))} for number in range(MOST)]
