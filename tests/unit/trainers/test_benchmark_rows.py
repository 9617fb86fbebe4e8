"""The benchmark's rows: each in a process of its own, measured in turns."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests import warm

PROGRAM = """
import json, sys
sys.executable = sys.argv[2]  # the rows have torch from the start too
from contextlib import closing
from pathlib import Path
from tests.benchmarks.trainers import measure
from tests.benchmarks.trainers.ladders import LADDERS, Row, ends
from tests.benchmarks.trainers.subject import Apart
from tests.unit.trainers.helpers import TINY

folder, ladder = Path(sys.argv[1]), next(one for one in LADDERS if one.name == "tcn")
naive, _, best = ends(ladder)
with (
    closing(Apart(ladder, naive, TINY["tcn"], folder)) as slow,
    closing(Apart(ladder, best, {**TINY["tcn"], "products": "none"}, folder)) as fast,
):
    measure.measure_steps([slow, fast], 1, 0)
    measure.measure_data([slow, fast], 1, 0)
    found = {
        "processes": len({slow.process.pid, fast.process.pid}),
        "difference": measure.check_equal([slow, fast], ladder.tolerance),
        "rounds": [len(slow.step_seconds), len(fast.data_seconds)],
        "kept": ["keep_memory" in one.facts["switches"] for one in (slow, fast)],
        "phases": sorted(fast.ask("phases", 2)),
    }
try:
    Apart(ladder, Row("wrong", "", {"seq_len": -1}), {}, folder)
except RuntimeError as error:
    found["wrong"] = str(error)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_rows_run_apart_and_agree(tmp_path: Path) -> None:
    done = subprocess.run(
        [warm.python(), "-c", PROGRAM, str(tmp_path), warm.python()],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["processes"] == 2
    assert found["difference"] < 1e-5
    assert found["rounds"] == [7, 7]
    assert found["kept"] == [False, True]
    assert {"forward", "backward", "optimizer"} <= set(found["phases"])
    assert found["wrong"] == "wrong: its process has ended"
