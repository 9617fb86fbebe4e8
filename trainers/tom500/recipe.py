"""The segmentation recipe: which data, which model, which loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from trainers import rungs
from trainers.datasets.cache import ArrayStore, fingerprint, fits_in_memory
from trainers.datasets.plan import Plan, SequentialPlan, ShuffledPlan
from trainers.datasets.ring import RingSource
from trainers.datasets.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.errors import TrainerError
from trainers.metrics import confusion, dice_scores
from trainers.recipe import Data, Recipe
from trainers.tom500.data import CachedSlices, Case, NaiveSlices, find_cases, fit_slice, load_case
from trainers.tom500.model import UNet, masked_loss, one_hot_loss
from trainers.tom500.options import Tom500Config
from trainers.tom500.synthetic import write_synthetic
from trainers.tuning.layout import channels_last

BASELINE_BATCHES = 16


class _NearestMean(nn.Module):
    """A "network" that only knows how bright each class is."""

    def __init__(self, means: Tensor) -> None:
        super().__init__()
        self.means = means

    def forward(self, image: Tensor) -> Tensor:
        return -(image - self.means.view(1, -1, 1, 1)).abs()


class Tom500Recipe(Recipe[Tom500Config]):
    name = "tom500"
    shape_options = ("image_size", "width", "depth", "num_classes")
    synthetic_options = ("image_size", "slices")
    config_class = Tom500Config
    metric = ("dice", "max")
    workers = 16
    optimizations = (
        rungs.CACHE,
        *rungs.COMMON,
        rungs.Optimization(
            name="resident",
            seed="beyond",
            rung="best",
            text="decoded once into a memory-mapped store, gathered",
        ),
        rungs.Optimization(
            name="native",
            seed="beyond",
            rung="best",
            text="3×3 convolutions with fewer products, and batch norms, in C (on a CPU)",
            measured=True,
        ),
        rungs.CHANNELS_LAST,
        rungs.Optimization(
            name="masked_dice",
            seed="beyond",
            rung="best",
            text="loss without scatter or one-hot",
            measured=True,
        ),
    )

    def build_data(self) -> Data:
        config = self.config
        self.flat: tuple[Tensor, Tensor] | None = None
        cases = self._usable(self._find())
        order = np.random.default_rng(config.seed).permutation(len(cases))
        held_out = max(1, int(len(cases) * config.validation_fraction))
        if len(cases) < 2:
            raise TrainerError("two usable volumes are the least: one trains, one validates")
        splits = [sorted(order[held_out:]), sorted(order[:held_out])]
        indexes = [[(int(c), plane) for c in split for plane in range(self.planes[c])] for split in splits]
        plans = (
            ShuffledPlan(len(indexes[0]), config.batch_size, seed=config.seed),
            SequentialPlan(len(indexes[1]), config.batch_size),
        )
        if self.on("resident"):
            sources = [self._resident(cases, index, plan) for index, plan in zip(indexes, plans, strict=True)]
        else:
            sources = self._loaders(cases, indexes, plans)
        return Data(train=sources[0], validation=sources[1])

    def _find(self) -> list[Case]:
        config = self.config
        if not config.synthetic:
            return find_cases(config.data_dir or "")
        shape = f"{config.slices}x{config.image_size}-{config.num_classes}-{config.seed}"
        folder = Path(config.out) / self.name / f"generated-{shape}"
        volumes = max(4, round(500 * config.synthetic_size))
        write_synthetic(folder, volumes, config)
        return find_cases(str(folder))[:volumes]

    def _usable(self, cases: list[Case]) -> list[Case]:
        """Decode each volume once: broken ones are skipped and counted, the others may be kept."""
        self.planes: list[int] = []
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []
        good, shapes = [], set()
        keep = self.on("cache_data") or self.on("resident")
        for case in cases:
            try:
                image, labels = load_case(case, self.config.num_classes)
            except (OSError, ValueError) as error:
                self.skip(case[0], str(error))
                continue
            good.append(case)
            self.planes.append(len(image))
            shapes.add(image.shape[1:])
            size = (image.nbytes + labels.nbytes) * len(cases)
            if keep and not self.kept and not fits_in_memory(size, "the decoded data set", self.say):
                keep = False
            if keep:
                self.kept.append((image, labels))
        self.size = (max((s[0] for s in shapes), default=0), max((s[1] for s in shapes), default=0))
        if len(shapes) > 1:
            self.say(f"slices of {len(shapes)} sizes, all padded to {self.size[0]}×{self.size[1]}")
        return good

    def _loaders(
        self, cases: list[Case], indexes: list[list[tuple[int, int]]], plans: tuple[Plan, Plan]
    ) -> list[BatchSource]:
        sources: list[BatchSource] = []
        for index, plan in zip(indexes, plans, strict=True):
            dataset: Dataset[Batch] = NaiveSlices(cases, index, self.config.num_classes, self.size)
            if self.on("cache_data") and self.kept:
                dataset = CachedSlices(self.kept, index, self.size)
            sources.append(LoaderSource(dataset, plan, self.loader_settings()))
        return sources

    def _resident(self, cases: list[Case], index: list[tuple[int, int]], plan: Plan) -> BatchSource:
        images, labels = self._stores(cases)
        first = np.concatenate([[0], np.cumsum(self.planes)])
        rows = torch.tensor([int(first[case]) + plane for case, plane in index])

        if self.device.type == "cuda":
            return RingSource({"image": images, "labels": labels}, rows, plan, self.device, self._arranged)

        def gather(items: Tensor) -> Batch:
            at = rows[items]
            return self._arranged({"image": images.index_select(0, at), "labels": labels.index_select(0, at)})

        return ResidentSource(gather, plan, self.device)

    def _arranged(self, batch: Batch) -> Batch:
        """Slices as stored → what the network and the loss take."""
        memory_format = torch.channels_last if self.on("channels_last") else torch.contiguous_format
        image = batch["image"].unsqueeze(1).contiguous(memory_format=memory_format)
        return {"image": image, "labels": batch["labels"].long()}

    def _stores(self, cases: list[Case]) -> tuple[Tensor, Tensor]:
        """All slices as two flat tensors: in memory when they fit, else memory-mapped from disk."""
        if self.flat is not None:
            return self.flat
        if self.kept:
            images, labels = (
                np.stack([fit_slice(plane, self.size) for volume in part for plane in volume])
                for part in zip(*self.kept, strict=True)
            )
            self.flat = torch.from_numpy(images), torch.from_numpy(labels)
            self.kept.clear()
        else:
            self.flat = self._mapped(cases)
        return self.flat

    def _mapped(self, cases: list[Case]) -> tuple[Tensor, Tensor]:
        config = self.config
        folder = Path(config.cache_dir or Path(config.out) / self.name / "decoded")
        key = fingerprint([p for case in cases for p in case], classes=config.num_classes)
        store = ArrayStore(folder, key)
        if not store.exists("images", "labels"):
            self._fill(store, cases)
        return torch.from_numpy(store.open("images")), torch.from_numpy(store.open("labels"))

    def _fill(self, store: ArrayStore, cases: list[Case]) -> None:
        store.clear_others()
        shape = (sum(self.planes), *self.size)
        images, labels = store.create("images", shape, np.float32), store.create("labels", shape, np.uint8)
        at = 0
        for case in cases:
            for image, label in zip(*load_case(case, self.config.num_classes), strict=True):
                images[at], labels[at] = fit_slice(image, self.size), fit_slice(label, self.size)
                at += 1
        store.commit("images")
        store.commit("labels")

    def build_model(self) -> nn.Module:
        config, kernels = self.config, self.on("native") and self.plain
        model = UNet(config.num_classes, config.width, config.depth, kernels)
        return channels_last(model) if self.on("channels_last") else model

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch["image"]).float()
        return (
            masked_loss(logits, batch["labels"])
            if self.on("masked_dice")
            else one_hot_loss(logits, batch["labels"])
        )

    def baseline(self, data: Data) -> dict[str, float]:
        """Every voxel gets the class whose mean brightness in training is nearest."""
        classes = self.config.num_classes
        sums, counts = torch.zeros(classes), torch.zeros(classes)
        for _, batch in zip(range(BASELINE_BATCHES), data.train.epoch(0), strict=False):
            image, labels = batch["image"].cpu().flatten(), batch["labels"].cpu().flatten()
            sums += torch.bincount(labels, image, minlength=classes)
            counts += torch.bincount(labels, minlength=classes)
        means = torch.where(counts > 0, sums / counts, torch.inf).to(self.device)
        nearest = _NearestMean(means)
        return {"dice_brightness": self.evaluate(nearest, data.validation)["dice"]}

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        classes = self.config.num_classes
        table = torch.zeros(classes, classes, dtype=torch.long, device=self.device)
        for batch in source.epoch(0):
            predicted = model(batch["image"].to(self.device)).argmax(1)
            table += confusion(predicted, batch["labels"].to(self.device), classes)
        scores = dice_scores(torch.stack(self.gather(table.cpu())).sum(0))
        return {"dice": float(scores[1:].nanmean()), "dice_background": float(scores[0])}
