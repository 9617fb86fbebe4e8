"""What the probe finds, and that its parts are independent."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
)

from sdk import TrainingMonitor
from sdk.loader._timing import FetchTimes, TimedFetcher
from sdk.loader.watch import LoaderWatch
from sdk.probe import _config as probe
from sdk.probe._model import model_part, trained_model
from tests.rings import RingFile, read_ring

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def nothing_compiled() -> None:
    """Ignore what other tests of this process compiled, because it hides autocast."""
    if "torch._dynamo.utils" in sys.modules:
        sys.modules["torch._dynamo.utils"].counters.clear()


class Data(Dataset[torch.Tensor]):
    def __init__(self, count: int = 32, seconds: float = 0.0) -> None:
        self.count = count
        self.seconds = seconds

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(self.seconds)
        return torch.full((4,), float(index))


class Whole(Data):
    def __getitems__(self, indices: list[int]) -> list[torch.Tensor]:
        time.sleep(self.seconds)
        return [torch.full((4,), float(index)) for index in indices]


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self) -> Iterator[torch.Tensor]:
        return (torch.ones(4) for _ in range(32))


def slow_collate(samples: list[torch.Tensor]) -> torch.Tensor:
    time.sleep(0.002)
    return torch.stack(samples)


def train(loader: DataLoader[Any], *, model: nn.Module | None = None, **options: Any) -> RingFile:
    """An API loop with one torch model; returns its ring."""
    model = model or nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters(), fused=options.get("fused"))
    scaler = torch.amp.GradScaler("cpu", enabled=True) if options.get("scaler") else None
    with TrainingMonitor("probe") as m:
        for _ in range(options.get("epochs", 1)):
            for x in m.loader(loader):
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.get("amp", False)):
                    loss = model(x).float().square().mean()
                if scaler:
                    scaler.scale(loss).backward()
                    scaler.step(optimizer)
                    scaler.update()
                else:
                    loss.backward()
                    optimizer.step()
                optimizer.zero_grad()
                m.step(loss)
    assert m.path is not None
    return read_ring(Path(m.path))


def test_everything_about_a_plain_loop(gpumon_dir: Path) -> None:
    found = train(DataLoader(Data(), batch_size=4, drop_last=True), fused=True)
    config = found.config
    assert config["torch"] == torch.__version__ and config["device"] == found.meta["device"] == "cpu"
    assert (
        config["loader"] | {"dataset_len": 32, "collate": "default_collate", "sampler": "SequentialSampler"}
        == config["loader"]
    )
    assert config["loader"]["num_workers"] == 0 and config["loader"]["drop_last"] is True
    assert config["optimizer"]["class"] == "AdamW" and config["optimizer"]["fused"] is True
    assert config["optimizer"]["kind"] == "AdamW"
    assert config["model"]["class"] == "Linear" and config["model"]["parameters"] == 10
    assert config["model"]["parameter_bytes"] == 40 and config["model"]["compiled"] is False
    assert config["precision"]["autocast"] is False and config["precision"]["grad_scaler"] is False
    assert config["threads"]["torch"] == 1 and config["anomaly"] is False
    assert config["shapes"] == {"fixed": True, "distinct": 1}
    assert found.scalars["proc.rss_bytes"] > 1e7
    assert found.meta["batch_size"] == 4


def test_precision_and_scaler_are_seen(gpumon_dir: Path) -> None:
    config = train(DataLoader(Data(), batch_size=4), amp=True, scaler=True).config
    assert config["precision"]["autocast"] is True
    assert config["precision"]["autocast_dtype"] == "bfloat16"
    assert config["precision"]["grad_scaler"] is True
    assert torch.autocast.__enter__.__qualname__ == "autocast.__enter__", "the hook took itself out"


def test_checkpointing_is_seen(gpumon_dir: Path) -> None:
    class Saves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)])
            self.head = nn.Linear(4, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            hidden: torch.Tensor = checkpoint(self.inner, self.head(x).repeat(64, 1), use_reentrant=False)
            return hidden

    found = train(DataLoader(Data(240), batch_size=4), model=Saves())
    assert found.config["model"]["class"] == "Saves"
    assert found.config["model"]["checkpointing"] is True
    assert found.scalars["checkpoint.blocks_per_step"] == pytest.approx(1, abs=0.3)


def test_where_loader_time_goes(gpumon_dir: Path) -> None:
    loader = DataLoader(Data(48, 0.004), batch_size=4, collate_fn=slow_collate)
    scalars = train(loader).scalars
    assert scalars["loader.batches"] == 12
    assert scalars["loader.getitem_s"] >= 0.004
    assert scalars["loader.fetch_s"] == pytest.approx(4 * scalars["loader.getitem_s"])
    assert scalars["loader.collate_s"] >= 0.002
    assert 0 < scalars["loader.sampler_s"] < scalars["loader.fetch_s"]
    assert scalars["loader.fetch_cpu_ratio"] < 0.5, "it sleeps, it does not compute"


class Computing:
    """A fetcher whose samples take a tenth of a second of arithmetic."""

    collate_fn = staticmethod(tuple)

    def fetch(self, index: list[int]) -> Any:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass
        return self.collate_fn(index)


@pytest.mark.skipif(not Path("/proc/thread-self/schedstat").exists(), reason="the kernel does not tell")
def test_a_loader_that_queues_for_a_core_does_not_wait_for_data() -> None:
    """GIVEN a core that somebody else wants too WHEN samples are computed THEN it all counts as computing."""
    mine = os.sched_getaffinity(0)
    times = FetchTimes()
    other = None
    try:
        os.sched_setaffinity(0, {min(mine)})
        other = subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=-1)
        assert other.stdout is not None and other.stdout.readline()
        began = time.monotonic()
        TimedFetcher(Computing(), times).fetch([1, 2])
        lasted = time.monotonic() - began
    finally:
        os.sched_setaffinity(0, mine)
        if other is not None:
            other.kill()
            other.communicate()
    assert lasted > 0.1 and times.cpu > 0.7


@pytest.mark.parametrize("workers", [0, 1])
def test_every_kind_of_loader_gives_the_same_batches(gpumon_dir: Path, workers: int) -> None:
    makers = [
        lambda: DataLoader(Whole(), batch_size=4, num_workers=workers),
        lambda: DataLoader(Data(), batch_size=None, num_workers=workers),
        lambda: DataLoader(Stream(), batch_size=4, num_workers=workers),
        lambda: DataLoader(
            Data(), batch_sampler=BatchSampler(RandomSampler(Data(), generator=torch.Generator()), 4, False),
            num_workers=workers, generator=torch.Generator(),
        ),
    ]  # fmt: skip
    for make in makers:
        torch.manual_seed(0)
        plain = [x.tolist() for x in make()]
        with TrainingMonitor() as m:
            torch.manual_seed(0)
            seen = [x.tolist() for x in m.loader(make())]
            assert m.config is not None
        assert seen == plain


def test_hot_line_in_the_dataset(gpumon_dir: Path) -> None:
    config = train(DataLoader(Data(160, 0.002), batch_size=4)).config
    spot = next(one for one in config["hotspots"] if one["phase"] == "data")
    assert spot["function"] == "Data.__getitem__"
    assert spot["code"] == "time.sleep(self.seconds)"
    assert spot["share"] > 0.6 and spot["kind"] == "sleep"
    assert config["sampled_steps"] >= 2


def test_counters_and_calls(gpumon_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = nn.Linear(4, 2)
    with TrainingMonitor() as m:
        for x in m.loader(DataLoader(Data(160), batch_size=4)):
            total = 0.0
            for value in model(x).sum(0):
                total += value.item()
            print("loss", total)
            m.step()
            time.sleep(0.002)
    assert m.path is not None
    scalars = read_ring(Path(m.path)).scalars
    assert scalars["sync.items_per_step"] == pytest.approx(2, abs=0.5)
    assert any(spot.get("calls") for spot in m.config["hotspots"])
    assert scalars["log.prints_per_step"] == pytest.approx(1, abs=0.3)
    assert sys.getprofile() is None


def test_one_broken_part_leaves_the_rest() -> None:
    def broken() -> None:
        raise RuntimeError("mixed precision settings")

    assert probe.take({"a": lambda: 1, "b": broken, "c": lambda: None}) == {"a": 1}


def test_tf32_conflict_does_not_hide_the_rest() -> None:
    before = torch.backends.cuda.matmul.fp32_precision
    try:
        torch.backends.cuda.matmul.fp32_precision = "ieee"
        assert "torch" in probe.torch_config(torch)
        assert "threads" in probe.torch_config(torch)
    finally:
        torch.backends.cuda.matmul.fp32_precision = before


def test_model_behind_wrappers() -> None:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten())
    holder = type("Task", (), {})()
    holder.model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    del model
    found = model_part(torch, optimizer, trained_model(torch, optimizer, sys._getframe()))
    assert found["class"] == "Sequential" and found["modules"] == 3
    assert found["channels_last"] is True


def test_a_class_of_the_authors_is_known_by_what_it_is_not_by_its_name() -> None:
    class Convinced(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    class Plain(nn.Conv2d):
        pass

    model = nn.Sequential(Convinced(), Plain(3, 8, 3))
    found = model_part(torch, torch.optim.SGD(model.parameters(), lr=0.1), model)
    assert found["layers"] == ["Conv2d", "Module", "Sequential"]
    assert found["layer_counts"] == {"Conv2d": 1, "Module": 1, "Sequential": 1}


class Subset(Data):
    """Named like torch's own, but its author's code."""


@pytest.mark.parametrize(
    ("data", "resident"),
    [
        (TensorDataset(torch.ones(8, 4)), True),
        (torch.utils.data.Subset(TensorDataset(torch.ones(8, 4)), [1, 2]), True),
        (torch.utils.data.Subset(Data(), [1, 2]), None),
        (ConcatDataset([Data(), TensorDataset(torch.ones(8, 4))]), None),
        (Subset(), None),
        ([1.0, 2.0], True),
    ],
)
def test_samples_are_resident_only_if_no_code_of_the_authors_makes_them(
    data: Any, resident: bool | None
) -> None:
    watch = SimpleNamespace(epochs_started=0, workers_started=0, whole_batch_seconds=lambda: None)
    assert probe.loader_config(DataLoader(data), watch).get("dataset_resident") is resident


@pytest.mark.parametrize(
    ("collate", "own"),
    [(slow_collate, True), (partial(slow_collate), True), (None, False), (torch.stack, None)],
)
def test_a_collate_function_is_the_authors_or_a_librarys(collate: Any, own: bool | None) -> None:
    watch = SimpleNamespace(epochs_started=0, workers_started=0, whole_batch_seconds=lambda: None)
    loader = DataLoader(Data(), collate_fn=collate)
    assert probe.loader_config(loader, watch).get("collate_own") is own


class Pads:
    def __call__(self, samples: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(
            samples,
        )

    def method(self, samples: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack([2 * one for one in samples])


@pytest.mark.parametrize(
    ("collate", "name", "lines"),
    [
        (Pads(), "Pads", 3),
        (Pads().method, "method", 2),
        (partial(partial(slow_collate)), "slow_collate", None),
        (lambda samples: samples, "<lambda>", 1),
    ],
)
def test_a_collate_function_has_a_place_whatever_kind_it_is(
    collate: Any, name: str, lines: int | None
) -> None:
    watch = SimpleNamespace(epochs_started=0, workers_started=0, whole_batch_seconds=lambda: None)
    found = probe.loader_config(DataLoader(Data(), collate_fn=collate), watch)
    file, first, last = found["collate_at"]
    assert found["collate"] == name and file.endswith("test_probe.py")
    assert lines is None or last - first + 1 == lines
    assert "collate_at" not in probe.loader_config(DataLoader(Data()), watch)


def test_pinning_is_timed_once_a_batch_and_undone() -> None:
    """torch's real function, on a batch without tensors: pinning one needs a device."""
    module = importlib.import_module("torch.utils.data._utils.pin_memory")
    original = module.pin_memory
    watch = LoaderWatch(dict, lambda: None)
    iterator = SimpleNamespace(_pin_memory=True, _sampler_iter=iter(()), _dataset_fetcher=None)
    watch._time(iterator)
    batch = {"names": ["a", "b"], "more": ("c", ["d"])}
    assert module.pin_memory(batch) == batch
    assert watch.times.pins == 1 and watch.times.scalars()["loader.pin_s"] > 0
    watch._untime(iterator)
    assert module.pin_memory is original


@pytest.mark.parametrize(
    ("places", "named"),
    [
        (["cpu", "cpu"], ["cpu"]),
        (["cpu", "meta"], ["meta"]),
        (["meta", "cpu"], ["meta"]),
        ([], []),
    ],
)
def test_the_devices_of_the_parameters(places: list[str], named: list[str]) -> None:
    """The CPU counts only if no other device has parameters; `meta` stands for a GPU here."""
    parameters = [nn.Parameter(torch.empty(2, device=place)) for place in places]
    groups = SimpleNamespace(param_groups=[{"params": parameters}])
    assert probe.devices_of(torch, groups) == named


def test_an_own_class_named_like_one_of_torchs_is_not_that_one() -> None:
    class SGD(torch.optim.Optimizer):
        def step(self, closure: Any = None) -> Any:
            """Does nothing."""

    class Mine(torch.optim.AdamW):
        """Torch's own, with another name."""

    parameters = [nn.Parameter(torch.ones(1))]
    found = [
        probe.optimizer_config(one)["kind"]
        for one in (SGD(parameters, {"lr": 0.1}), Mine(parameters, lr=0.1))
    ]
    assert found == ["Optimizer", "AdamW"]
