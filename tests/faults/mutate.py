"""Rings as an attacker or a failing disk would leave them: a whole ring with some of its parts changed."""

from __future__ import annotations

import copy
import json
import os
import random
import struct
import time
from collections.abc import Callable
from typing import Any

from sdk import ring

SLOTS = 64
NASTY_WORDS = (0, 1, 2, 63, 64, 65, 2**31 - 1, 2**31, 2**32, 2**50, 2**53, 2**56, 2**62, 2**63, 2**64 - 1)
NASTY_FLOATS = (0.0, -1.0, 1e-320, 1e15, 1.7e308, -1.7e308, float("inf"), float("-inf"), float("nan"))
NASTY_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 5, 2**63, 2**64, 10**300, 1.7e308, -1.7e308, 1e-320, float("inf"), float("nan"),
    "", " ", "²", "٣", "cuda:²", "cuda:-1", "cuda:999999999999", "cpu", "\ud800", "\x00\x1b[31m", "x" * 5000,
    "../../etc", "@0", [], [[]], {}, [1, None, "a"], {"a": 1}, {"": {"": [{}]}}, [{}] * 300,
)  # fmt: skip
SPOT = {"phase": "fetch", "function": "f", "file": "d.py", "line": 7, "code": "x = f(x)", "share": 0.5,
        "seconds": 1.0, "kind": "cpu", "inside": "torch.nn.f", "calls": 2, "callers": [{}]}  # fmt: skip
CALL = {"file": "d.py", "line": 4, "lines": [[0, "loader = DataLoader(data, num_workers=0)"]], "end": [0, 40],
        "arguments": 2, "positional": [[0, 20, 4]], "keywords": {"num_workers": [0, 38, 1]}}  # fmt: skip
WORK = {"phase": "log", "function": "f", "file": "d.py", "line": 9, "code": "save(x)", "share": 0.4,
        "seconds": 1.0, "needed": "no", "job": "save", "api": "torch.save", "steps": 40, "steps_seen": 40,
        "guard": {"line": 9, "lines": [[0, "save(x)"]], "counter": "step"},
        "hoist": {"code": "x = g()", "call": "g()", "loop_line": 8, "loop": "for b in l:"}}  # fmt: skip
LOADER = {"num_workers": 2, "batch_size": 8, "pin_memory": False, "persistent_workers": False,
          "dataset": "Data", "dataset_len": 100, "sampler": "RandomSampler", "epochs_started": 3,
          "workers_started": 6, "prefetch_factor": 2, "start_method": "fork", "collate": "f"}  # fmt: skip
CONFIG: dict[str, Any] = {
    "hotspots": [SPOT], "work": [WORK], "sites": {"loader": CALL, "optimizer": CALL, "top": {"line": 3}},
    "keeps": [SPOT], "per_epoch": [SPOT], "env": {"CUDA_VISIBLE_DEVICES": "0,1"}, "visible_devices": "0,1",
    "device_uuid": "GPU-1", "device": "cuda:0", "gpu_name": "A100", "gpu_memory_bytes": 2**36,
    "cpu_count": 8, "cpu_affinity": 8, "cpu_model": "x", "loader": LOADER,
    "optimizer": {"class": "Adam", "fused": False, "foreach": False, "lr": 0.1, "param_groups": 1},
    "model": {"class": "Net", "parameters": 10**6, "parameter_bytes": 4 * 10**6, "tensors": 10,
              "dtype": "float32", "modules": 5, "layers": {"Conv2d": 3, "Linear": 1}, "compiled": False},
    "precision": {"autocast": False, "matmul_tf32": False, "grad_scaler": False},
    "cudnn": {"benchmark": False, "deterministic": True}, "threads": {"torch": 8, "omp_env": "4"},
    "anomaly": True, "deterministic_algorithms": True, "compile": {"used": True, "recompiles": 9, "graphs": 2,
    "graph_breaks": 1}, "shapes": {"fixed": True, "distinct": 3}, "syncs": [SPOT], "framework": "lightning",
}  # fmt: skip
SCALARS = [
    "proc.rss_bytes", "cuda.allocated_bytes", "cuda.reserved_bytes", "cuda.alloc_retries", "loader.batches",
    "loader.getitem_s", "loader.fetch_s", "loader.wait_s", "loader.sampler_s", "loader.fetch_cpu_ratio",
    "device.known", "device.time_s.data", "device.idle_s.data", "device.empty.forward", "device.gap_s",
    "device.sync_idle_s", "device.kernels", "sync.items_per_step", "sync.seconds_per_step", "gc.seconds",
    "log.writes_per_step", "log.seconds_per_step", "transfer.copies_per_step", "transfer.bytes_per_step",
    "transfer.blocking_per_step", "dynamo.recompiles", "mine",
]  # fmt: skip
META: dict[str, Any] = {
    "kind": "trainer", "run": "mutant", "rank": 0, "name": "net", "world": 2, "local_rank": 0,
    "batch_size": 8, "parent_pid": 1, "worker_id": 0, "host": "box", "user": "root", "container": "c",
    "pod": "p", "slurm_job": "1", "git_commit": "abc", "command": "python x.py", "script": "x.py",
    "sdk_version": "1", "way": "api", "device": "cuda:0", "device_uuid": "GPU-0000-abcd", "error": "E",
    "framework": "lightning", "phases": ["mix"], "scalars": SCALARS, "config": CONFIG,
}  # fmt: skip


class Mutant:
    """One ring, written with `write` and perhaps changed again while it is followed."""

    def __init__(self, chance: random.Random, run: str) -> None:
        self.chance = chance
        self.meta_run = run
        self.meta: dict[str, Any] = {**META, "run": run, "kind": chance.choice(("trainer", "worker"))}
        self.words = [0] * (ring.DATA_AT // 8 + SLOTS * ring.SLOT_WORDS)
        self._fill()
        changes = (self._header, self._meta, self._config, self._scalars, self._records, self._bytes)
        for change in chance.choices(changes, k=chance.randint(1, 3)):
            change()

    def _fill(self) -> None:
        now, records, words = time.monotonic_ns(), self.chance.choice((0, 3, 40, 60, 200)), self.words
        took, slow = self.chance.choice((10**7, 10**8)), self.chance.randrange(ring.PHASE_SLOTS)
        words[ring.H_MAGIC], words[ring.H_VERSION], words[ring.H_SLOTS] = ring.MAGIC, ring.VERSION, SLOTS
        words[ring.H_HEAD] = records
        words[ring.H_PID] = self.chance.choice((os.getpid(), 2**30))
        words[ring.H_STATE] = self.chance.choice((ring.S_RUNNING, ring.S_ENDED, ring.S_FAILED))
        words[ring.H_STARTED_MONO], words[ring.H_STARTED_WALL] = now, time.time_ns()
        for number in range(max(1, records - SLOTS + 1), records + 1):
            at = ring.DATA_AT // 8 + (number - 1) % SLOTS * ring.SLOT_WORDS
            words[at] = words[at + ring.W_COMMIT] = number
            words[at + ring.W_END] = now - (records - number) * took
            words[at + ring.W_BEGIN] = words[at + ring.W_END] - took
            words[at + ring.W_PHASES + slow] = took * 2 // 3
            words[at + ring.W_PHASES + number % 12] += took // 10
            words[at + ring.W_SAMPLES] = 8
        for at in range(len(SCALARS)):
            words[ring.SCALARS_AT // 8 + at] = ring.float_bits(self.chance.choice((0.0, 0.3, 40.0)))

    def _header(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            self.words[self.chance.randint(0, 15)] = self._word()

    def _records(self) -> None:
        for _ in range(self.chance.randint(1, 40)):
            at = ring.DATA_AT // 8 + self.chance.randrange(SLOTS) * ring.SLOT_WORDS
            self.words[at + self.chance.randint(1, ring.SLOT_WORDS - 2)] = self._word()

    def _scalars(self) -> None:
        for _ in range(self.chance.randint(1, 8)):
            value = self.chance.choice(NASTY_FLOATS)
            self.words[ring.SCALARS_AT // 8 + self.chance.randint(0, len(SCALARS))] = ring.float_bits(value)

    def _word(self) -> int:
        nasty = self.chance.choice(NASTY_WORDS)
        return self.chance.choice((nasty, self.chance.getrandbits(64), time.monotonic_ns() + nasty % 2**40))

    def _nasty(self) -> Any:
        return copy.deepcopy(self.chance.choice(NASTY_VALUES))

    def _meta(self) -> None:
        for key in self.chance.sample(sorted(self.meta), self.chance.randint(1, 5)):
            if key != "run" or self.chance.random() < 0.1:
                self.meta[key] = self._nasty()

    def _config(self) -> None:
        config = json.loads(json.dumps(CONFIG))
        for _ in range(self.chance.randint(1, 4)):
            self._replace_somewhere(config)
        self.meta["config"] = config

    def _replace_somewhere(self, place: Any) -> None:
        """Walk down a random path and put something else there."""
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = self.chance.choice(keys)
            if not isinstance(place[key], dict | list) or self.chance.random() < 0.4:
                place[key] = self._nasty()
                return
            place = place[key]

    def _bytes(self) -> None:
        """What a failing disk does: anything anywhere."""
        for _ in range(self.chance.randint(1, 20)):
            self.words[self.chance.randrange(len(self.words))] = self.chance.getrandbits(64)

    def encode(self) -> bytes:
        text = json.dumps(self.meta).encode()[: ring.META_BYTES]
        if not self.words[ring.H_META_LEN]:
            self.words[ring.H_META_LEN] = len(text)
        raw = bytearray(struct.pack(f"<{len(self.words)}Q", *self.words))
        raw[ring.META_AT : ring.META_AT + len(text)] = text
        cut = self.chance.choice((None, None, None, None, ring.DATA_AT + 300))
        return bytes(raw[:cut])

    def again(self) -> bytes:
        """The same ring, changed while somebody reads it."""
        self.words[ring.H_META_SEQ] = 2 * self.chance.randint(0, 3)
        changes: tuple[Callable[[], None], ...] = (self._header, self._config, self._scalars, self._records)
        self.chance.choice(changes)()
        return self.encode()
