"""The TCN's recipe: which data, which model, which loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from trainers import native, rungs
from trainers.datasets import tables, windows
from trainers.datasets.cache import fits_in_memory
from trainers.datasets.plan import SequentialPlan, ShuffledPlan
from trainers.datasets.scaler import StandardScaler
from trainers.datasets.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.errors import TrainerError
from trainers.metrics import Means, mean_of
from trainers.options import listed
from trainers.recipe import Data, Recipe
from trainers.tcn.data import NaiveSequences, NormalisedSequences, simulate
from trainers.tcn.model import ImplicitStateTcn, Kernels
from trainers.tcn.options import SIMULATED, TcnConfig


def chosen(state: Tensor, columns: list[int]) -> Tensor:
    """As they are when they are all: the gradient of an index adds one number after the other."""
    return state if columns == list(range(state.shape[-1])) else state[..., columns]


class TcnRecipe(Recipe[TcnConfig]):
    name = "tcn"
    shape_options = ("seq_len", "channels", "levels")
    file_options = ("fill", "dates")
    config_class = TcnConfig
    metric = ("rmse", "min")
    compile_mode = "reduce-overhead"
    optimizations = (
        rungs.Optimization(name="normalise_once", seed="S0.1", rung="document", text="scaler applied once"),
        rungs.CACHE,
        *rungs.COMMON,
        rungs.RESIDENT,
        rungs.Optimization(
            name="native",
            seed="beyond",
            rung="best",
            text="all convolutions of a sample in one C kernel (on a CPU)",
            measured=True,
        ),
        rungs.Optimization(
            name="copy_free",
            seed="beyond",
            rung="best",
            text="convolutions as copy-free products (on a CPU)",
            measured=True,
        ),
    )

    def build_data(self) -> Data:
        config, length = self.config, self.config.seq_len
        self.inputs = listed("input_columns", config.input_columns)
        self.targets = listed("target_columns", config.target_columns)
        runs = self._read()
        lengths = [len(run) for run in runs]
        rows = np.concatenate(runs)
        seen = windows.train_rows(lengths, length, config.validation_fraction)
        train, validation = windows.split_starts(lengths, length, config.validation_fraction)
        if not len(validation):
            raise TrainerError("no validation window fits", hint="longer files or a smaller --seq_len")
        count = len(self.inputs)
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
        columns = [*self.inputs, *self.targets]
        if config.synthetic:
            generator = np.random.default_rng(config.seed)
            rows = max(10 * config.seq_len, int(2500 * config.synthetic_size))
            at = tables.places(columns, SIMULATED)
            return [simulate(rows, config.time_step, generator)[:, at] for _ in range(12)]
        files = tables.find_files(config.data_dir or "")
        settings = config.table_settings(2 * config.seq_len)
        return tables.read_tables(files, columns, settings, self.skip, self.say)[0]

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
        names = self.inputs, self.targets
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
        sizes = len(self.inputs), len(self.targets)
        return ImplicitStateTcn(*sizes, config.channels, config.levels, self._kernels())

    def _kernels(self) -> Kernels:
        if self.on("native") and self.plain and native.fits(self.config.channels):
            return "native"
        products = self.on("copy_free") and self.device.type == "cpu" and not self.on("amp")
        return "products" if products else "library"

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
            position, velocity = (chosen(predicted.float(), self.columns[1]) * scale + mean).unbind(-1)
            step = self.config.time_step
            acceleration = (force - damping * velocity - stiffness * position)[:, :-1]
            first = (position.diff(dim=1) / step - velocity[:, 1:]) / scale[1]
            second = (velocity.diff(dim=1) / step - acceleration) / scale[1]
            return (first.square() + second.square()).mean() * step

    def baseline(self, data: Data) -> dict[str, float]:
        means = Means(self.device)
        for batch in data.validation.epoch(0):
            means.add("square", batch["targets"].square())  # normalised: their mean is 0
        return {"rmse_mean": mean_of(self.gather(means.totals()))["square"] ** 0.5}

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        means = Means(self.device)
        for batch in source.epoch(0):
            predicted = model(batch["inputs"].to(self.device)).float()
            targets = batch["targets"].to(self.device)
            means.add("square", (predicted - targets).square())
            means.add("square_position", (predicted[..., 0] - targets[..., 0]).square())
        values = mean_of(self.gather(means.totals()))
        return {"rmse": values["square"] ** 0.5, "rmse_position": values["square_position"] ** 0.5}
