"""`%%gpumon` in a real kernel: small torch loops in cells, and what appears below them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import PATIENCE, wait_for
from tests.rings import trainer_rings

ROOT = Path(__file__).parents[3]
SET_UP = """
import os, time, torch
from torch import nn
torch.set_num_threads(1)
def train(steps, pause=0.0):
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for at in range(steps):
        loss = model(torch.ones(4, 8)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(pause)
"""


def require_kernel() -> None:
    missing = [name for name in ("ipykernel", "nbclient", "nbformat") if not importlib.util.find_spec(name)]
    reason = f"{', '.join(missing)} not installed (pip install -e '.[dev]')"
    if missing and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if missing:
        pytest.skip(reason)


class Notebook:
    """A separate kernel, fed cell by cell."""

    def __init__(self, folder: Path, rings: Path) -> None:
        import nbformat
        from jupyter_client.manager import KernelManager
        from nbclient import NotebookClient

        manager = KernelManager()
        manager.kernel_spec.argv[0] = sys.executable
        self.rings = rings
        self._new = nbformat.v4.new_code_cell
        self.book = nbformat.v4.new_notebook()
        self.client = NotebookClient(
            self.book, km=manager, timeout=PATIENCE, resources={"metadata": {"path": str(folder)}}
        )

    def run(self, source: str, *, fails: bool = False) -> Any:
        from nbclient.exceptions import CellExecutionError

        cell = self._new(source)
        self.book.cells.append(cell)
        try:
            self.client.execute_cell(cell, len(self.book.cells) - 1)
        except CellExecutionError:
            assert fails, cell.outputs
        else:
            assert not fails
        return cell

    def interrupt(self) -> None:
        manager: Any = self.client.km
        os.kill(manager.provisioner.pid, signal.SIGINT)


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[Notebook]:
    require_kernel()
    (rings := folder / "rings").mkdir()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(ROOT))
        environment.setenv("GPUMON_DIR", str(rings))
        environment.setenv("GPUMON_STORE", str(folder / "history.db"))
        environment.setenv("IPYTHONDIR", str(folder / "ipython"))
        made = Notebook(folder, rings)
        with made.client.setup_kernel():
            made.run("%load_ext gpumon")
            made.run(SET_UP)
            yield made


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    with opened(tmp_path_factory.mktemp("notebook")) as made:
        yield made


@pytest.fixture
def notebook(kernel: Notebook) -> Notebook:
    """The kernel of all tests, with nothing recorded yet."""
    for path in kernel.rings.iterdir():
        path.unlink()
    return kernel


def texts(cell: Any, kind: str) -> list[str]:
    return [one["data"][kind] for one in cell.outputs if kind in one.get("data", {})]


def report(cell: Any) -> str:
    """The one report below a cell."""
    (found,) = texts(cell, "text/html")
    return str(found)


def test_a_cell_that_trains_has_a_line_and_its_report(notebook: Notebook) -> None:
    """WHEN a cell trains for a few seconds THEN a line shows its progress, and the report ends it."""
    cell = notebook.run("%%gpumon small-net\nprint('mine')\ntrain(150, 0.02)\n6 * 7")
    line = texts(cell, "text/plain")[0]
    assert line.startswith("gpumon  ") and "steps" in line and "it/s" in line
    assert "small-net" in report(cell) and "150 steps" in report(cell)
    assert "<script" not in report(cell)
    assert "small-net" in texts(cell, "text/plain")[-1]
    assert "42" in texts(cell, "text/plain")
    assert [one["text"] for one in cell.outputs if one.output_type == "stream"] == ["mine\n"]


def test_every_cell_is_a_run_of_its_own(notebook: Notebook) -> None:
    first = notebook.run("%%gpumon one\ntrain(20)")
    plain = notebook.run("train(20)\nos.environ.get('GPUMON_RUN_ID')")
    second = notebook.run("%%gpumon two\ntrain(30)")
    assert "20 steps" in report(first) and "30 steps" in report(second)
    assert plain.outputs == []
    assert sorted(path.name.partition("-")[0] for path in notebook.rings.glob("*.ring")) == ["one", "two"]


def test_a_cell_that_raises_raises_and_is_reported(notebook: Notebook) -> None:
    cell = notebook.run("%%gpumon\ntrain(20)\nraise ValueError('mine')", fails=True)
    (error,) = (one for one in cell.outputs if one.output_type == "error")
    assert (error["ename"], error["evalue"]) == ("ValueError", "mine")
    assert "line 3" in re.sub(r"\x1b\[[\d;]*m", "", "".join(error["traceback"]))
    assert "20 steps" in report(cell) and "ValueError" in report(cell)


def test_a_cell_that_is_interrupted_is_reported(notebook: Notebook) -> None:
    def interrupt() -> None:
        wait_for(lambda: any(one.header.head > 20 for one in trainer_rings(notebook.rings)))
        notebook.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    cell = notebook.run("%%gpumon\ntrain(10**9, 0.001)", fails=True)
    thread.join()
    assert [one["ename"] for one in cell.outputs if one.output_type == "error"] == ["KeyboardInterrupt"]
    assert "interrupted" in report(cell)
    assert "20 steps" in report(notebook.run("%%gpumon\ntrain(20)"))


def test_a_cell_that_does_not_train_says_so(notebook: Notebook) -> None:
    cell = notebook.run("%%gpumon\nx = 1")
    assert texts(cell, "text/html") == []
    assert "no training was seen" in texts(cell, "text/plain")[-1]


def test_other_magics_and_await_work_inside(notebook: Notebook) -> None:
    cell = notebook.run("%%gpumon\nimport asyncio\nawait asyncio.sleep(0)\ntrain(20)")
    assert "20 steps" in report(cell)
    assert "20 steps" in report(notebook.run("%%gpumon\n%%time\ntrain(20)"))


def test_a_folder_with_our_names_is_no_obstacle(tmp_path: Path) -> None:
    """In a kernel of its own, which has imported nothing of ours yet."""
    with opened(tmp_path) as notebook:
        for name in ("sdk", "monitor"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text("raise ImportError('not for gpumon')")
        assert "20 steps" in report(notebook.run("%%gpumon\ntrain(20)"))


def test_a_monitor_in_the_cell_takes_over(notebook: Notebook) -> None:
    cell = notebook.run(
        "%%gpumon\nfrom gpumon import TrainingMonitor\nwith TrainingMonitor('own') as m:\n"
        "    for _ in range(25):\n        with m.phase('forward'):\n            pass\n        m.step()"
    )
    assert "25 steps" in report(cell)


def test_nothing_heavy_is_loaded_into_the_kernel(notebook: Notebook) -> None:
    notebook.run("%%gpumon\ntrain(20)")
    cell = notebook.run("import sys; print(sorted({'monitor', 'msgspec', 'textual'} & set(sys.modules)))")
    assert cell.outputs[0]["text"] == "[]\n"
