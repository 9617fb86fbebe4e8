"""LSTM with attention over time series, a parameter grid over widths and lengths (S4).

    python -m trainers.sequence --data_dir series.csv --target_column value --batch_size 256
    python -m trainers.sequence --synthetic --grid_hidden 128,256 --grid_lengths 30,60,90
    python -m trainers.sequence --synthetic --rung naive

Data: CSV or NPZ tables, one row a day. A sample is `sequence_length` days; the target is the target
column of the day after.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from trainers import cli, grid, options, rungs
from trainers.config import TrainConfig
from trainers.data import tables, windows
from trainers.data.plan import Plan, SequentialPlan, ShuffledPlan
from trainers.data.scaler import StandardScaler
from trainers.data.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.engine.recipe import Data, Recipe
from trainers.errors import TrainerError
from trainers.metrics import Means


@dataclass(kw_only=True)
class SequenceConfig(TrainConfig):
    """Options of the sequence trainer."""

    batch_size: int = 256
    """Sequences in a batch."""
    sequence_length: int = 60
    """Days of a sequence."""
    hidden_size: int = 128
    """Width of the LSTM."""
    layers: int = 1
    """LSTM layers."""
    target_column: str = "value"
    """The column to forecast; the network sees all columns."""
    columns: str | None = None
    """Columns to use. Unset: all of the first file."""
    grid_hidden: str = ""
    """Train once for each of these widths: --grid_hidden 128,256."""
    grid_lengths: str = ""
    """… and each of these lengths: --grid_lengths 30,60,90."""
    grid_processes: int | None = None
    """Grid runs side by side. Unset: one a core on a CPU (naive: 1), one on a GPU."""


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


def synthetic_days(rows: int, seed: int) -> np.ndarray:
    """A value with weekly and yearly seasons and trend, and seven columns that hint at it."""
    generator = np.random.default_rng(seed)
    day = np.arange(rows)
    season = np.sin(2 * np.pi * day / 7) + 2 * np.sin(2 * np.pi * day / 365)
    value = 10 + season + np.cumsum(generator.normal(0, 0.1, rows))
    hints = [np.roll(value, lag) + generator.normal(0, 0.5, rows) for lag in (1, 2, 7, 14, 30)]
    return np.column_stack([value, day % 7, day % 365, *hints])


SYNTHETIC_COLUMNS = ["value", "weekday", "yearday", "lag1", "lag2", "lag7", "lag14", "lag30"]


class NaiveSequences(Dataset[tuple[Tensor, Tensor]]):
    """Every window copied out in advance, converted one by one when asked for."""

    def __init__(self, rows: np.ndarray, starts: np.ndarray, length: int, target: int) -> None:
        self.x = np.stack([rows[at : at + length] for at in starts])
        self.y = np.array([rows[at + length, target] for at in starts])

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return torch.FloatTensor(self.x[index]), torch.FloatTensor([self.y[index]])


def collate(samples: list[tuple[Tensor, Tensor]]) -> Batch:
    return {"x": torch.stack([x for x, _ in samples]), "y": torch.stack([y for _, y in samples])}


# ── model ────────────────────────────────────────────────────────────────────────────────────────


class AttentionLstm(nn.Module):
    """(batch, days, columns) → the next value, and how much each day counted."""

    def __init__(self, columns: int, hidden: int, layers: int, pooled: bool = False) -> None:
        super().__init__()
        self.pooled = pooled
        self.lstm = nn.LSTM(columns, hidden, layers, batch_first=True)
        self.score = nn.Sequential(nn.Linear(hidden, hidden // 2), nn.Tanh(), nn.Linear(hidden // 2, 1))
        self.head = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.lstm(x)
        weight = self.score(states).softmax(dim=1)
        if self.pooled:  # one product; the plain form writes all weighted states first, forth and back
            context = torch.bmm(weight.transpose(1, 2), states).squeeze(1)
        else:
            context = (weight * states).sum(dim=1)
        return self.head(context), weight.squeeze(-1)


# ── recipe ───────────────────────────────────────────────────────────────────────────────────────


class SequenceRecipe(Recipe[SequenceConfig]):
    name = "sequence"
    config_class = SequenceConfig
    metric = ("rmse", "min")
    compile_mode = "max-autotune"
    optimizations = (
        rungs.Optimization(
            name="device_eval", seed="S4.5", rung="document", text="evaluation accumulates on the device"
        ),
        *rungs.COMMON,
        rungs.RESIDENT,
        rungs.Optimization(
            name="pooling", seed="beyond", rung="best", text="attention pooled by one product"
        ),
    )

    def build_data(self) -> Data:
        config, length = self.config, self.config.sequence_length
        series, names = self._read()
        if config.target_column not in names:
            raise TrainerError(f"no column {config.target_column!r}: there are {', '.join(names)}")
        target = names.index(config.target_column)
        lengths = [len(part) for part in series]
        rows = np.concatenate(series)
        seen = windows.train_rows(lengths, length + 1, config.validation_fraction)
        starts = windows.split_starts(lengths, length + 1, config.validation_fraction)
        if not len(starts[1]):
            raise TrainerError(
                "no validation window fits", hint="longer series or a smaller --sequence_length"
            )
        self.scaler = StandardScaler().fit(rows[seen])
        rows = self.scaler.transform(rows)
        self.columns, self.target_scale = len(names), float(self.scaler.scale[target])
        plans = (
            ShuffledPlan(len(starts[0]), config.batch_size, seed=config.seed),
            SequentialPlan(len(starts[1]), config.batch_size),
        )
        make = self._resident if self.on("resident") else self._loader
        train, held_out = (make(rows, begin, plan, target) for begin, plan in zip(starts, plans, strict=True))
        return Data(train=train, validation=held_out)

    def _read(self) -> tuple[list[np.ndarray], list[str]]:
        config = self.config
        if config.synthetic:
            rows = max(5 * config.sequence_length, int(3650 * config.synthetic_size))
            return [synthetic_days(rows, config.seed + n) for n in range(4)], SYNTHETIC_COLUMNS
        files = tables.find_files(config.data_dir or "")
        names = config.columns.split(",") if config.columns else tables.column_names(files[0])
        return tables.read_tables(files, names, 3 * config.sequence_length, self.skip), names

    def _loader(self, rows: np.ndarray, starts: np.ndarray, plan: Plan, target: int) -> BatchSource:
        dataset = NaiveSequences(rows, starts, self.config.sequence_length, target)
        return LoaderSource(dataset, plan, self.loader_settings(), collate=collate)

    def _resident(self, rows: np.ndarray, starts: np.ndarray, plan: Plan, target: int) -> BatchSource:
        length = self.config.sequence_length
        store = windows.WindowStore(rows, length, self.device)
        begin = torch.from_numpy(starts).to(self.device)
        values = store.rows[:, target].contiguous()

        def gather(items: Tensor) -> Batch:
            at = begin.index_select(0, items)
            return {"x": store.gather(at), "y": values.index_select(0, at + length).unsqueeze(1)}

        return ResidentSource(gather, plan, self.device)

    def build_model(self) -> nn.Module:
        return AttentionLstm(self.columns, self.config.hidden_size, self.config.layers, self.on("pooling"))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        predicted, _ = model(batch["x"])
        return (predicted.float() - batch["y"]).square().mean()

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        evaluate = evaluate_model if self.on("device_eval") else evaluate_by_batch
        mean_square, mean_absolute = evaluate(model, source, self.device)
        return {"rmse": mean_square**0.5 * self.target_scale, "mae": mean_absolute * self.target_scale}


def evaluate_model(model: nn.Module, source: BatchSource, device: torch.device) -> tuple[float, float]:
    """Mean square and absolute error; everything stays on the device until the last line."""
    means = Means(device)
    for batch in source.epoch(0):
        error = model(batch["x"].to(device))[0].float() - batch["y"].to(device)
        means.add("square", error.square())
        means.add("absolute", error.abs())
    values = means.read()
    return values["square"], values["absolute"]


def evaluate_by_batch(model: nn.Module, source: BatchSource, device: torch.device) -> tuple[float, float]:
    """What the document replaced: every batch is fetched to the host as Python numbers."""
    predicted: list[float] = []
    actual: list[float] = []
    for batch in source.epoch(0):
        predicted.extend(model(batch["x"].to(device))[0].cpu().float().numpy().ravel().tolist())
        actual.extend(batch["y"].cpu().numpy().ravel().tolist())
    error = np.array(predicted) - np.array(actual)
    return float((error**2).mean()), float(np.abs(error).mean())


@torch.no_grad()
def extract_attention_importance(model: nn.Module, source: BatchSource, device: torch.device) -> np.ndarray:
    """Mean attention per day of the window (sums to 1); one transfer at the end."""
    total, count = None, 0
    for batch in source.epoch(0):
        weight = model(batch["x"].to(device))[1].float().sum(dim=0)
        total = weight if total is None else total + weight
        count += len(batch["x"])
    if total is None:
        raise TrainerError("no data to take the attention from")
    return (total / count).cpu().numpy()


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if any(word.startswith(("--grid_", "--grid-")) for word in given):
        return grid.main(given, lambda words: options.parse(SequenceConfig, words, "trainers.sequence", ""))
    return cli.main(SequenceRecipe, __doc__ or "", arguments)


if __name__ == "__main__":
    sys.exit(main())
