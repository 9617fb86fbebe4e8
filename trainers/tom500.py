"""TOM500: segmentation of orbital MRI, slices of NIfTI volumes through a UNet (S1).

    python -m trainers.tom500 --data_dir TOM500 --batch_size 8 --num_workers 16 --compile_model \\
        --validation_interval 20
    python -m trainers.tom500 --synthetic --rung naive

Data: `images/NAME.nii.gz` with `labels/NAME.nii.gz` beside it (any folders named image…, label…).
A sample is one slice; intensities are clipped to the volume's 0.5–99.5 percentiles and standardised.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from trainers import cli, rungs
from trainers.config import TrainConfig
from trainers.data import nifti, tables
from trainers.data.cache import ArrayStore, fingerprint, fits_in_memory
from trainers.data.plan import Plan, SequentialPlan, ShuffledPlan
from trainers.data.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.engine.recipe import Data, Recipe
from trainers.errors import TrainerError
from trainers.metrics import dice_scores

Case = tuple[Path, Path]


@dataclass(kw_only=True)
class Tom500Config(TrainConfig):
    """Options of the TOM500 trainer."""

    batch_size: int = 8
    """Slices in a batch."""
    synthetic_size: float = 0.04
    """Size of the generated data as a factor of the document's 500 volumes."""
    validation_interval: int = 20
    """Epochs between validations."""
    width: int = 16
    """Channels of the UNet's first level."""
    depth: int = 3
    """Times the UNet halves the resolution."""
    num_classes: int = 5
    """Labels, background included."""
    image_size: int = 256
    """Height and width of generated slices."""
    slices: int = 24
    """Slices of a generated volume."""
    cache_dir: str | None = None
    """Folder of the decoded store. Unset: inside --out."""


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


def normalise(volume: np.ndarray) -> np.ndarray:
    """Clip to the 0.5–99.5 percentiles, mean 0, deviation 1: the usual MRI normalisation."""
    low, high = np.percentile(volume, (0.5, 99.5)).astype(np.float32)
    clipped = np.clip(volume.astype(np.float32), low, high)
    return (clipped - np.float32(clipped.mean())) / np.float32(max(clipped.std(), 1e-6))


def load_case(case: Case, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Image (float32) and labels (uint8) of one volume, decoded and checked."""
    image, labels = nifti.read(case[0]), nifti.read(case[1])
    if image.shape != labels.shape:
        raise nifti.NiftiError(f"image {image.shape} and labels {labels.shape} differ in shape")
    if labels.max() >= classes or labels.min() < 0:
        raise nifti.NiftiError(f"label {labels.max()} but --num_classes {classes}")
    return normalise(image), labels.astype(np.uint8)


def find_cases(folder: str) -> list[Case]:
    """Image files with a label file of the same name."""
    files = tables.find_files(folder, (".nii", ".nii.gz"))
    labels = {_case_name(path): path for path in files if path.parent.name.lower().startswith("label")}
    images = [path for path in files if path.parent.name.lower().startswith("image")]
    cases = [(path, labels[_case_name(path)]) for path in images if _case_name(path) in labels]
    if not cases:
        raise TrainerError(
            f"no image with a label of the same name under {folder!r}",
            hint="images/NAME.nii.gz and labels/NAME.nii.gz are expected",
        )
    return cases


def _case_name(path: Path) -> str:
    return path.name.split(".nii")[0].removesuffix("_0000")


def write_synthetic(folder: Path, volumes: int, config: Tom500Config) -> None:
    """Volumes with ellipsoids of different brightness as the organs."""
    generator = np.random.default_rng(config.seed)
    size, depth = config.image_size, config.slices
    grid = np.stack(np.meshgrid(*(np.linspace(-1, 1, n) for n in (depth, size, size)), indexing="ij"))
    for number in range(volumes):
        path = folder / "images" / f"case{number:04d}.nii.gz"
        if path.exists():
            continue
        labels = np.zeros((depth, size, size), np.uint8)
        for label in range(1, config.num_classes):
            center, radius = generator.uniform(-0.6, 0.6, 3), generator.uniform(0.15, 0.4, 3)
            inside = (((grid - center[:, None, None, None]) / radius[:, None, None, None]) ** 2).sum(0) < 1
            labels[inside] = label
        image = 300.0 + 120.0 * labels.astype(np.float32) + generator.normal(0, 40, labels.shape)
        for part, data in (("labels", labels), ("images", image.astype(np.int16))):
            (folder / part).mkdir(parents=True, exist_ok=True)
            nifti.write(folder / part / path.name, data, level=3)


class NaiveSlices(Dataset[Batch]):
    """A slice means: inflate the volume, normalise it, take one plane; again in every epoch."""

    def __init__(self, cases: list[Case], index: list[tuple[int, int]], classes: int) -> None:
        self.cases, self.index, self.classes = cases, index, classes

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, item: int) -> Batch:
        case, plane = self.index[item]
        image, labels = load_case(self.cases[case], self.classes)
        return _sample(image[plane], labels[plane])


class CachedSlices(Dataset[Batch]):
    """Volumes decoded once and kept (S1.2)."""

    def __init__(self, volumes: list[tuple[np.ndarray, np.ndarray]], index: list[tuple[int, int]]) -> None:
        self.volumes, self.index = volumes, index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, item: int) -> Batch:
        case, plane = self.index[item]
        image, labels = self.volumes[case]
        return _sample(image[plane], labels[plane])


def _sample(image: np.ndarray, labels: np.ndarray) -> Batch:
    return {"image": torch.from_numpy(image[None]), "labels": torch.from_numpy(labels.astype(np.int64))}


# ── model and loss ───────────────────────────────────────────────────────────────────────────────


def double_conv(inputs: int, outputs: int) -> nn.Sequential:
    """Two convolutions, normalised once."""
    return nn.Sequential(
        *(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(inplace=True)),
        *(
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        ),
    )


class UNet(nn.Module):
    """(batch, 1, height, width) → (batch, classes, height, width)."""

    def __init__(self, classes: int, width: int, depth: int) -> None:
        super().__init__()
        self.depth = depth
        widths = [width * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(double_conv(i, o) for i, o in zip([1, *widths], widths, strict=False))
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, stride=2) for i, o in pairs)
        self.mix = nn.ModuleList(double_conv(2 * o, o) for _, o in pairs)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, image: Tensor) -> Tensor:
        kept = [self.down[0](image)]
        for block in self.down[1:]:
            kept.append(block(F.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for up, mix in zip(self.up, self.mix, strict=True):
            x = mix(torch.cat([kept.pop(), up(x)], dim=1))
        return self.head(x)


def one_hot_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy + soft dice with an explicit one-hot tensor."""
    chance = logits.softmax(1)
    hot = F.one_hot(labels, logits.shape[1]).permute(0, 3, 1, 2).float()
    return F.cross_entropy(logits, labels) + _dice_loss(
        (chance * hot).sum((0, 2, 3)), chance, hot.sum((0, 2, 3))
    )


def masked_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The same value from one log-softmax and a comparison: nothing is scattered, forth or back."""
    log_chance = logits.log_softmax(1)
    chance = log_chance.exp()
    classes = torch.arange(logits.shape[1], device=labels.device).view(1, -1, 1, 1)
    mask = (labels.unsqueeze(1) == classes).to(chance.dtype)
    entropy = -(log_chance * mask).sum() / labels.numel()
    return entropy + _dice_loss((chance * mask).sum((0, 2, 3)), chance, mask.sum((0, 2, 3)))


def _dice_loss(shared: Tensor, chance: Tensor, counts: Tensor) -> Tensor:
    return 1 - ((2 * shared + 1) / (chance.sum((0, 2, 3)) + counts + 1)).mean()


# ── recipe ───────────────────────────────────────────────────────────────────────────────────────


class Tom500Recipe(Recipe[Tom500Config]):
    name = "tom500"
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
        rungs.CHANNELS_LAST,
        rungs.Optimization(
            name="masked_dice", seed="beyond", rung="best", text="loss without scatter or one-hot"
        ),
    )

    def build_data(self) -> Data:
        config = self.config
        if config.image_size % 2**config.depth and config.synthetic:
            raise TrainerError(f"--image_size {config.image_size} does not halve {config.depth} times")
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
        folder = Path(config.out) / self.name / f"synthetic-{shape}"
        volumes = max(4, round(500 * config.synthetic_size))
        write_synthetic(folder, volumes, config)
        return find_cases(str(folder))[:volumes]

    def _usable(self, cases: list[Case]) -> list[Case]:
        """Decode each volume once: broken ones are skipped and counted, the others may be kept."""
        self.planes: list[int] = []
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []
        good, shape = [], None
        keep = self.on("cache_data") or self.on("resident")
        for case in cases:
            try:
                image, labels = load_case(case, self.config.num_classes)
                shape = shape or image.shape[1:]
                if image.shape[1:] != shape:
                    raise nifti.NiftiError(f"slices of {image.shape[1:]}, the others have {shape}")
            except (OSError, ValueError) as error:
                self.skip(case[0], str(error))
                continue
            good.append(case)
            self.planes.append(len(image))
            size = (image.nbytes + labels.nbytes) * len(cases)
            if keep and not self.kept and not fits_in_memory(size, "the decoded data set", self.say):
                keep = False
            if keep:
                self.kept.append((image, labels))
        return good

    def _loaders(
        self, cases: list[Case], indexes: list[list[tuple[int, int]]], plans: tuple
    ) -> list[BatchSource]:
        sources: list[BatchSource] = []
        for index, plan in zip(indexes, plans, strict=True):
            dataset: Dataset[Batch] = NaiveSlices(cases, index, self.config.num_classes)
            if self.on("cache_data") and self.kept:
                dataset = CachedSlices(self.kept, index)
            sources.append(LoaderSource(dataset, plan, self.loader_settings()))
        return sources

    def _resident(self, cases: list[Case], index: list[tuple[int, int]], plan: Plan) -> BatchSource:
        images, labels = self._stores(cases)
        first = np.concatenate([[0], np.cumsum(self.planes)])
        rows = torch.tensor([int(first[case]) + plane for case, plane in index])
        memory_format = torch.channels_last if self.on("channels_last") else torch.contiguous_format

        def gather(items: Tensor) -> Batch:
            at = rows[items]
            image = images.index_select(0, at).unsqueeze(1).contiguous(memory_format=memory_format)
            return {
                "image": image.to(self.device),
                "labels": labels.index_select(0, at).to(self.device).long(),
            }

        return ResidentSource(gather, plan, torch.device("cpu"))

    def _stores(self, cases: list[Case]) -> tuple[Tensor, Tensor]:
        """All slices as two flat tensors: in memory when they fit, else memory-mapped from disk."""
        if hasattr(self, "flat"):
            return self.flat
        if self.kept:
            images = torch.from_numpy(np.concatenate([image for image, _ in self.kept]))
            self.flat = images, torch.from_numpy(np.concatenate([labels for _, labels in self.kept]))
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
        image, _ = load_case(cases[0], self.config.num_classes)
        shape = (sum(self.planes), *image.shape[1:])
        images, labels = store.create("images", shape, np.float32), store.create("labels", shape, np.uint8)
        at = 0
        for case, planes in zip(cases, self.planes, strict=True):
            images[at : at + planes], labels[at : at + planes] = load_case(case, self.config.num_classes)
            at += planes
        store.commit("images")
        store.commit("labels")

    def build_model(self) -> nn.Module:
        model = UNet(self.config.num_classes, self.config.width, self.config.depth)
        return model.to(memory_format=torch.channels_last) if self.on("channels_last") else model

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch["image"]).float()
        return (
            masked_loss(logits, batch["labels"])
            if self.on("masked_dice")
            else one_hot_loss(logits, batch["labels"])
        )

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        predicted, labels = [], []
        for batch in source.epoch(0):
            predicted.append(model(batch["image"].to(self.device)).argmax(1).to(torch.uint8))
            labels.append(batch["labels"].to(self.device, torch.uint8))
        scores = dice_scores(torch.cat(predicted).long(), torch.cat(labels).long(), self.config.num_classes)
        return {"dice": float(scores[1:].nanmean()), "dice_background": float(scores[0])}


def main(arguments: list[str] | None = None) -> int:
    return cli.main(Tom500Recipe, __doc__ or "", arguments)


if __name__ == "__main__":
    sys.exit(main())
