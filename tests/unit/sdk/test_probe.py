"""What the probe finds, that each part stands alone, and what it costs."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler

from sdk import TrainingMonitor, probe
from sdk.loader import LoaderWatch
from sdk.modelprobe import model_part
from sdk.observe import Observer
from tests.rings import RingFile, read_ring

torch.set_num_threads(1)


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
    """An API loop with one torch model; gives its ring."""
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


def test_where_loader_time_goes(gpumon_dir: Path) -> None:
    loader = DataLoader(Data(48, 0.001), batch_size=4, collate_fn=slow_collate)
    scalars = train(loader).scalars
    assert scalars["loader.batches"] == 12
    assert 0.001 <= scalars["loader.getitem_s"] < 0.01
    assert scalars["loader.fetch_s"] >= 4 * 0.001
    assert scalars["loader.collate_s"] >= 0.002
    assert 0 < scalars["loader.sampler_s"] < 0.001
    assert scalars["loader.fetch_cpu_ratio"] < 0.5, "it sleeps, it does not compute"


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
    found = model_part(torch, optimizer, sys._getframe())
    assert found["class"] == "Sequential" and found["modules"] == 3
    assert found["channels_last"] is True


def test_probe_is_cheap() -> None:
    """The part that runs in the first step: 100 µs, best of many."""
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(8)])
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(Data(), batch_size=4)
    costs = []
    for _ in range(30):
        with TrainingMonitor() as m:
            m.loaders.loader = loader
            observer = Observer(m.loaders)
            observer.training(torch, optimizer, sys._getframe())
            costs.append(observer.cost_ns)
    assert min(costs) < 400_000, f"{min(costs) / 1e3:.0f} µs"


def test_pinning_is_timed_once_a_batch_and_undone() -> None:
    """The real function of torch, on a batch without tensors: pinning one needs a device."""
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
