"""A process on the NVML stand-in: a (recorded) run on GPU 0, a few ticks, and the findings as JSON.

pynvml finds the stand-in through LD_LIBRARY_PATH, which is read when a process starts.
"""

from __future__ import annotations

import json
import sys
import time
from array import array
from pathlib import Path

from monitor.model.settings import Settings
from monitor.pipeline.pipeline import Pipeline
from sdk import ring
from sdk.writer import RingWriter

STEP_NS = 10_000_000
PHASES = {"data": 0.05, "transfer": 0.2, "forward": 0.25, "backward": 0.4, "optimizer": 0.1}


def write_run(folder: Path, uuid: str, config: dict[str, object]) -> RingWriter:
    """A run of two seconds on the GPU with this uuid."""
    scalars = config.pop("scalars", {})
    assert isinstance(scalars, dict)
    meta = {
        "kind": "trainer",
        "run": "gpu-case",
        "name": "gpu-case",
        "rank": 0,
        "world": 1,
        "way": "api",
        "device": "cuda:0",
        "device_uuid": uuid,
        "batch_size": 32,
        "phases": [],
        "scalars": list(scalars),
        "config": config,
    }
    writer = RingWriter(str(folder / "gpu-case.0.ring"), meta)
    begin = time.monotonic_ns() - 200 * STEP_NS
    for number in range(200):
        record = array("Q", ring.EMPTY_RECORD)
        record[ring.W_BEGIN] = begin + number * STEP_NS
        record[ring.W_END] = begin + (number + 1) * STEP_NS
        record[ring.W_SAMPLES] = 32
        for name, share in PHASES.items():
            record[ring.W_PHASES + ring.PHASES.index(name)] = int(share * STEP_NS)
        writer.commit(record)
    return writer


def main() -> int:
    folder, uuid, config = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    scalars = dict(config.get("scalars", {}))
    writer = write_run(folder, uuid, config)
    for at, value in enumerate(scalars.values()):
        writer.scalars[at] = value
    pipeline = Pipeline(Settings(source="nvml", dir=(folder,), store=None, listen=None, socket=None))
    snapshot = pipeline.tick()
    for _ in range(4):
        time.sleep(0.15)
        snapshot = pipeline.tick()
    pipeline.close()
    findings = [[finding.id, finding.severity, finding.title] for finding in snapshot.findings]
    print(json.dumps({"findings": findings, "gpus": len(snapshot.gpus), "runs": len(snapshot.runs)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
