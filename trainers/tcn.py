"""Implicit-state TCN: infer a system's hidden state from measured windows, held to its physics (S0).

    python -m trainers.tcn --data_dir "data_simulation_*" --epochs 100 --batch_size 512 --lr 1e-3 \\
        --lambda_physics 0.5 --num_workers 8 --prefetch_factor 8 --cache_data --use_amp
    python -m trainers.tcn --synthetic --rung naive      # the slow twin
    torchrun --nproc-per-node 2 -m trainers.tcn --synthetic

Data: CSV or NPZ tables of a driven oscillator (force, noisy measurement, parameters → position and
velocity). Loss: data term + lambda_physics × residual of  x' = v,  v' = F − c·v − k·x.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from trainers import cli, rungs
from trainers.config import TrainConfig
from trainers.data import tables, windows
from trainers.data.cache import fits_in_memory
from trainers.data.plan import SequentialPlan, ShuffledPlan
from trainers.data.scaler import StandardScaler
from trainers.data.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.engine.recipe import Data, Recipe
from trainers.errors import TrainerError
from trainers.metrics import Means
from trainers.tuning.causal import CausalReluConv

INPUTS = "force,measured,damping,stiffness,ambient,drift"
TARGETS = "position,velocity"


@dataclass(kw_only=True)
class TcnConfig(TrainConfig):
    """Options of the TCN trainer."""

    lambda_physics: float = 0.5
    """Weight of the physics residual in the loss."""
    seq_len: int = 50
    """Rows in a window."""
    time_step: float = 0.05
    """Seconds between two rows."""
    channels: int = 32
    """Channels of the network."""
    levels: int = 4
    """Residual blocks; each doubles the dilation."""
    input_columns: str = INPUTS
    """Columns the network sees."""
    target_columns: str = TARGETS
    """Columns it predicts."""


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


def simulate(rows: int, time_step: float, generator: np.random.Generator) -> np.ndarray:
    """One run of a driven, damped oscillator, with the columns INPUTS + TARGETS."""
    damping, stiffness = generator.uniform(0.2, 1.0), generator.uniform(0.5, 3.0)
    time = np.arange(rows) * time_step
    force = sum(np.sin(time * generator.uniform(0.2, 3.0) + generator.uniform(0, 6)) for _ in range(4))
    position, velocity, states = 0.0, 0.0, np.empty((rows, 2))
    for row in range(rows):
        states[row] = position, velocity
        velocity += time_step * (force[row] - damping * velocity - stiffness * position)
        position += time_step * velocity
    measured = states[:, 0] + generator.normal(0, 0.05, rows)
    ambient, drift = generator.normal(20, 1, rows), np.linspace(0, generator.normal(), rows)
    constant = np.ones(rows)
    return np.column_stack(
        [force, measured, damping * constant, stiffness * constant, ambient, drift, states]
    )


class NaiveSequences(Dataset[Batch]):
    """A list of raw windows; the scaler is called for each one, every time it is asked for."""

    def __init__(
        self, inputs: np.ndarray, targets: np.ndarray, starts: np.ndarray, length: int, scaler: Any
    ) -> None:
        self.scaler = scaler
        self.sequences = [
            {"inputs": inputs[at : at + length], "targets": targets[at : at + length]} for at in starts
        ]

    def __len__(self) -> int:
        return len(self.sequences)

    def __getitem__(self, index: int) -> Batch:
        sequence = self.sequences[index]
        inputs = self.scaler.transform(sequence["inputs"])
        return {"inputs": torch.FloatTensor(inputs), "targets": torch.FloatTensor(sequence["targets"])}


class NormalisedSequences(Dataset[Batch]):
    """Windows of rows that were normalised once; `__getitem__` only slices. `cached`: as tensors."""

    def __init__(
        self, inputs: np.ndarray, targets: np.ndarray, starts: np.ndarray, length: int, cached: bool
    ) -> None:
        self.inputs, self.targets = inputs.astype(np.float32), targets.astype(np.float32)
        self.starts, self.length = starts, length
        self.cache = [self._make(at) for at in starts] if cached else None

    def _make(self, at: int) -> Batch:
        window = slice(at, at + self.length)
        return {
            "inputs": torch.from_numpy(self.inputs[window]),
            "targets": torch.from_numpy(self.targets[window]),
        }

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> Batch:
        return self.cache[index] if self.cache is not None else self._make(self.starts[index])


# ── model ────────────────────────────────────────────────────────────────────────────────────────


class CausalConv(nn.Conv1d):
    """relu(causal dilated convolution [+ residual]).

    plain: (batch, channels, time), the library's convolution. products: (channels, time, batch), see
    `trainers.tuning.causal`. The weights are the same, and so is the result up to rounding.
    """

    def __init__(self, inputs: int, outputs: int, dilation: int, products: bool) -> None:
        super().__init__(inputs, outputs, 3, dilation=dilation)
        self.products = products

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        if self.products:
            return CausalReluConv.apply(x, self.weight, self.bias, residual, self.dilation[0])
        out = super().forward(F.pad(x, (2 * self.dilation[0], 0)))
        return F.relu(out if residual is None else residual + out)


class ImplicitStateTcn(nn.Module):
    """(batch, time, inputs) → (batch, time, state)."""

    def __init__(self, inputs: int, states: int, channels: int, levels: int, products: bool = False) -> None:
        super().__init__()
        self.turn = (2, 1, 0) if products else (0, 2, 1)
        self.lift = CausalConv(inputs, channels, 1, products)
        self.first = nn.ModuleList(CausalConv(channels, channels, 2**n, products) for n in range(levels))
        self.second = nn.ModuleList(CausalConv(channels, channels, 2**n, products) for n in range(levels))
        self.head = nn.Linear(channels, states)

    def forward(self, inputs: Tensor) -> Tensor:
        x = self.lift(inputs.permute(self.turn).contiguous())
        for first, second in zip(self.first, self.second, strict=True):
            x = second(first(x), x)
        return self.head(x.permute(self.turn))


# ── recipe ───────────────────────────────────────────────────────────────────────────────────────


class TcnRecipe(Recipe[TcnConfig]):
    name = "tcn"
    config_class = TcnConfig
    metric = ("rmse", "min")
    compile_mode = "reduce-overhead"
    optimizations = (
        rungs.Optimization(name="normalise_once", seed="S0.1", rung="document", text="scaler applied once"),
        rungs.CACHE,
        *rungs.COMMON,
        rungs.RESIDENT,
        rungs.Optimization(
            name="products", seed="beyond", rung="best", text="convolutions as copy-free products (on a CPU)"
        ),
    )

    def build_data(self) -> Data:
        config, length = self.config, self.config.seq_len
        runs = self._read()
        lengths = [len(run) for run in runs]
        rows = np.concatenate(runs)
        seen = windows.train_rows(lengths, length, config.validation_fraction)
        train, validation = windows.split_starts(lengths, length, config.validation_fraction)
        if not len(validation):
            raise TrainerError("no validation window fits", hint="longer files or a smaller --seq_len")
        count = len(config.input_columns.split(","))
        self.scalers = StandardScaler().fit(rows[seen, :count]), StandardScaler().fit(rows[seen, count:])
        self._prepare_physics()
        plans = (
            ShuffledPlan(len(train), config.batch_size, seed=config.seed),
            SequentialPlan(len(validation), config.batch_size),
        )
        if self.on("resident"):
            return self._resident(rows, count, (train, validation), plans)
        return Data(
            train=LoaderSource(self._dataset(rows, count, train), plans[0], self.loader_settings()),
            validation=LoaderSource(self._dataset(rows, count, validation), plans[1], self.loader_settings()),
        )

    def _read(self) -> list[np.ndarray]:
        config = self.config
        if config.synthetic:
            generator = np.random.default_rng(config.seed)
            rows = max(10 * config.seq_len, int(2500 * config.synthetic_size))
            return [simulate(rows, config.time_step, generator) for _ in range(12)]
        columns = [*config.input_columns.split(","), *config.target_columns.split(",")]
        files = tables.find_files(config.data_dir or "")
        return tables.read_tables(files, columns, 2 * config.seq_len, self.skip)

    def _dataset(self, rows: np.ndarray, count: int, starts: np.ndarray) -> Dataset[Batch]:
        length = self.config.seq_len
        inputs, targets = self._normalised(rows, count)
        if not self.on("normalise_once"):
            return NaiveSequences(rows[:, :count], targets, starts, length, self.scalers[0].as_library())
        cached = self.on("cache_data")
        needed = len(starts) * 1200  # two tensor objects and a dict for each window
        if cached and not fits_in_memory(needed, "the window cache", self.say):
            cached = False
        return NormalisedSequences(inputs, targets, starts, length, cached)

    def _normalised(self, rows: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        return self.scalers[0].transform(rows[:, :count]), self.scalers[1].transform(rows[:, count:])

    def _resident(self, rows: np.ndarray, count: int, starts: Any, plans: Any) -> Data:
        length, device = self.config.seq_len, self.device
        inputs, targets = (
            windows.WindowStore(part, length, device) for part in self._normalised(rows, count)
        )
        sources = []
        for begin, plan in zip(starts, plans, strict=True):
            plan.indices = torch.from_numpy(begin)  # the plan speaks of rows directly
            sources.append(
                ResidentSource(
                    lambda at: {"inputs": inputs.gather(at), "targets": targets.gather(at)}, plan, device
                )
            )
        return Data(train=sources[0], validation=sources[1])

    def _prepare_physics(self) -> None:
        """Which columns the residual needs, and their scales as tensors on the device."""
        self.physics = self.config.lambda_physics > 0
        names = self.config.input_columns.split(","), self.config.target_columns.split(",")
        needed = ("force", "damping", "stiffness"), ("position", "velocity")
        missing = [n for have, want in zip(names, needed, strict=True) for n in want if n not in have]
        if self.physics and missing:
            raise TrainerError(
                f"the physics residual needs the columns {', '.join(missing)}",
                hint="--lambda_physics 0 trains on the data term alone",
            )
        if self.physics:
            at = [names[0].index(n) for n in needed[0]], [names[1].index(n) for n in needed[1]]
            self.columns = at
            scales = [
                (torch.tensor(s.scale[i], dtype=torch.float32), torch.tensor(s.mean[i], dtype=torch.float32))
                for s, i in zip(self.scalers, at, strict=True)
            ]
            self.scales = [(scale.to(self.device), mean.to(self.device)) for scale, mean in scales]

    def build_model(self) -> nn.Module:
        config = self.config
        sizes = len(config.input_columns.split(",")), len(config.target_columns.split(","))
        products = self.on("products") and self.device.type == "cpu" and not self.on("amp")
        return ImplicitStateTcn(*sizes, config.channels, config.levels, products)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        predicted = model(batch["inputs"])
        loss = F.mse_loss(predicted.float(), batch["targets"])
        if self.physics:
            loss = loss + self.config.lambda_physics * self.residual(batch["inputs"], predicted)
        return loss

    def residual(self, inputs: Tensor, predicted: Tensor) -> Tensor:
        """Mean square of what the predicted state violates of its own physics, in float32: squared
        derivatives overflow float16."""
        with torch.autocast(self.device.type, enabled=False):
            (input_scale, input_mean), (scale, mean) = self.scales
            force, damping, stiffness = (inputs[..., self.columns[0]] * input_scale + input_mean).unbind(-1)
            position, velocity = (predicted.float()[..., self.columns[1]] * scale + mean).unbind(-1)
            step = self.config.time_step
            acceleration = (force - damping * velocity - stiffness * position)[:, :-1]
            first = (position.diff(dim=1) / step - velocity[:, 1:]) / scale[1]
            second = (velocity.diff(dim=1) / step - acceleration) / scale[1]
            return (first.square() + second.square()).mean() * step

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        means = Means(self.device)
        for batch in source.epoch(0):
            predicted = model(batch["inputs"].to(self.device)).float()
            targets = batch["targets"].to(self.device)
            means.add("square", (predicted - targets).square())
            means.add("square_position", (predicted[..., 0] - targets[..., 0]).square())
        values = means.read()
        return {"rmse": values["square"] ** 0.5, "rmse_position": values["square_position"] ** 0.5}


def main(arguments: list[str] | None = None) -> int:
    return cli.main(TcnRecipe, __doc__ or "", arguments)


if __name__ == "__main__":
    sys.exit(main())
