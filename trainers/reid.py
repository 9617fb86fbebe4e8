"""Multi-modal re-identification: P×K batches, identity and triplet losses, mAP and rank-k (S2).

    python -m trainers.reid --data_dir DATA --batch_size 32 --num_instances 4
    python -m trainers.reid --synthetic --rung naive

Data: `MODALITY/IDENTITY/SAMPLE.jpg`; a sample is the same name under several modalities, of which
some may be missing. Identities held out for validation are never trained on.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from trainers import cli, rungs
from trainers.config import TrainConfig
from trainers.data.cache import ArrayStore, fingerprint, fits_in_memory
from trainers.data.pk_sampler import CachedModalAwarePKSampler, LookupPKPlan, NaivePKPlan, PKPlan
from trainers.data.plan import Plan, SequentialPlan
from trainers.data.source import Batch, BatchSource, LoaderSource, ResidentSource
from trainers.engine.recipe import Data, Recipe
from trainers.errors import TrainerError
from trainers.metrics import retrieval

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp"}


@dataclass(kw_only=True)
class ReidConfig(TrainConfig):
    """Options of the re-identification trainer."""

    batch_size: int = 32
    """Samples in a batch: identities × instances."""
    synthetic_size: float = 0.05
    """Size of the generated data as a factor of the document's 14,910 samples and 320 identities."""
    num_instances: int = 4
    """Samples of an identity in a batch (K)."""
    ensure_rgb: bool = True
    """Every identity of a batch shows at least one RGB image."""
    prefer_complete: bool = True
    """Samples with all modalities first."""
    modalities: str = "rgb,nir,tir"
    """Folder names of the modalities."""
    image_height: int = 64
    """Height of the network's input."""
    image_width: int = 32
    """Width of the network's input."""
    width: int = 16
    """Channels of the network's first layer."""
    margin: float = 0.3
    """Margin of the triplet loss."""
    clip_norm: float | None = 5.0
    """Clip the gradient norm at this value."""
    naive_sampler: str = "picked"
    """The naive sampler reads the samples it picks ("picked") or every candidate ("candidates")."""
    cache_dir: str | None = None
    """Folder of the decoded store. Unset: inside --out."""


# ── data ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Record:
    """One sample: whose it is, and a file for each modality it has."""

    identity: int
    files: dict[str, Path]


def find_records(folder: Path, modalities: tuple[str, ...]) -> list[Record]:
    """All samples of the folder, in a stable order."""
    found: dict[tuple[str, str], dict[str, Path]] = {}
    for modality in modalities:
        for path in (folder / modality).glob("*/*"):
            if path.suffix.lower() in SUFFIXES:
                found.setdefault((path.parent.name, path.stem), {})[modality] = path
    if not found:
        raise TrainerError(
            f"no image under {folder}/({'|'.join(modalities)})/IDENTITY/",
            hint="--modalities names the folders",
        )
    names = {name: number for number, name in enumerate(sorted({identity for identity, _ in found}))}
    return [Record(names[identity], files) for (identity, _), files in sorted(found.items())]


def decode(path: Path, size: tuple[int, int]) -> np.ndarray | None:
    """One image as (3, height, width) bytes; None when the file is broken."""
    try:
        with Image.open(path) as image:
            small = image.convert("RGB").resize((size[1], size[0]), Image.Resampling.BILINEAR)
    except (OSError, UnidentifiedImageError, SyntaxError, ValueError):
        return None
    return np.asarray(small).transpose(2, 0, 1)


def to_float(pixels: Tensor) -> Tensor:
    """Bytes to −1…1."""
    return pixels.float().div_(255.0).sub_(0.5).div_(0.5)


class ReidImages(Dataset[Batch]):
    """Samples decoded from their files each time. Missing or broken modalities are left out."""

    def __init__(
        self, records: list[Record], labels: list[int], modalities: tuple[str, ...], size: tuple[int, int]
    ):
        self.records, self.labels, self.modalities, self.size = records, labels, modalities, size

    def __len__(self) -> int:
        return len(self.records)

    def identity_of(self, index: int) -> int:
        return self.labels[index]

    def modalities_of(self, index: int) -> tuple[bool, ...]:
        files = self.records[index].files
        return tuple(name in files for name in self.modalities)

    def __getitem__(self, index: int) -> Batch:
        images = {}
        for name, path in self.records[index].files.items():
            pixels = decode(path, self.size)
            if pixels is not None:
                images[name] = to_float(torch.from_numpy(pixels.copy()))
        return {"images": images, "identity": self.labels[index]}

    def infer_modalities_of_sample(self, index: int) -> tuple[bool, bool]:
        """(complete, has RGB), found by reading the sample."""
        images = self[index]["images"]
        return len(images) == len(self.modalities), "rgb" in images

    def collate(self, samples: list[Batch]) -> Batch:
        """A batch that tolerates missing modalities: zeros, and a mask that says so."""
        shape = (len(samples), len(self.modalities), 3, *self.size)
        images, present = torch.zeros(shape), torch.zeros(shape[:2], dtype=torch.bool)
        for row, sample in enumerate(samples):
            for column, name in enumerate(self.modalities):
                if name in sample["images"]:
                    images[row, column] = sample["images"][name]
                    present[row, column] = True
        return {
            "images": images,
            "present": present,
            "identity": torch.tensor([s["identity"] for s in samples]),
        }


def write_synthetic(folder: Path, config: ReidConfig, samples: int, identities: int) -> None:
    """Identities as colour patterns under noise; some samples lack a modality, some identities RGB."""
    generator = np.random.default_rng(config.seed)
    for number in range(samples):
        identity = number % identities
        pattern = np.random.default_rng(identity).uniform(40, 215, (8, 4, 3))
        for modality in config.modalities.split(","):
            lacking = generator.random() < 0.1 or (modality == "rgb" and identity % 10 == 9)
            path = folder / modality / f"id{identity:04d}" / f"s{number:06d}.jpg"
            if lacking and number >= identities:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            noise = generator.normal(0, 25, (256, 128, 1 if modality != "rgb" else 3))
            pixels = pattern.repeat(32, 0).repeat(32, 1) + noise
            pixels = pixels if modality == "rgb" else pixels.mean(2, keepdims=True).repeat(3, 2)
            if not (modality == "rgb" and identity % 10 == 9):
                Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=90)
    (folder / "done").touch()


# ── model ────────────────────────────────────────────────────────────────────────────────────────


class ReidNet(nn.Module):
    """A stem per modality, a shared body, features averaged over the modalities a sample has."""

    def __init__(self, modalities: int, identities: int, width: int) -> None:
        super().__init__()
        self.stems = nn.ModuleList(nn.Conv2d(3, width, 3, stride=2, padding=1) for _ in range(modalities))
        self.body = nn.Sequential(
            *(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        )
        self.neck = nn.BatchNorm1d(4 * width)
        self.classify = nn.Linear(4 * width, identities, bias=False)

    def forward(self, images: Tensor, present: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(fused features, features after the neck, class scores)."""
        stems = torch.cat([F.relu(stem(images[:, column])) for column, stem in enumerate(self.stems)])
        features = self.body(stems).view(len(self.stems), len(images), -1)
        weight = present.T.unsqueeze(-1).to(features.dtype)
        fused = (features * weight).sum(0) / weight.sum(0).clamp(min=1)
        necked = self.neck(fused)
        return fused, necked, self.classify(necked)


def batch_hard_triplet(features: Tensor, identity: Tensor, margin: float) -> Tensor:
    """The farthest of one's own against the nearest of the others."""
    distance = torch.cdist(features, features, compute_mode="donot_use_mm_for_euclid_dist")
    same = identity[:, None] == identity[None]
    farthest = distance.masked_fill(~same, 0).amax(1)
    nearest = distance.masked_fill(same, float("inf")).amin(1)
    return F.relu(farthest - nearest + margin).mean()


# ── recipe ───────────────────────────────────────────────────────────────────────────────────────


class ReidRecipe(Recipe[ReidConfig]):
    name = "reid"
    config_class = ReidConfig
    metric = ("mAP", "max")
    workers = 2
    compile_mode = "reduce-overhead"
    optimizations = (
        rungs.Optimization(
            name="cached_sampler", seed="S2.1", rung="document", text="sampler metadata cached once"
        ),
        *rungs.COMMON,
        rungs.Optimization(
            name="resident", seed="beyond", rung="best", text="images decoded once, batches gathered"
        ),
        rungs.Optimization(
            name="epoch_plan", seed="beyond", rung="best", text="the whole epoch sampled in one sort"
        ),
        rungs.CHANNELS_LAST,
    )

    def build_data(self) -> Data:
        config = self.config
        self.batch_unit = config.num_instances  # type: ignore[misc]
        self.modalities = tuple(config.modalities.split(","))
        if "rgb" not in self.modalities or config.naive_sampler not in ("picked", "candidates"):
            raise TrainerError("--modalities needs rgb, and --naive_sampler is picked or candidates")
        self.size = (config.image_height, config.image_width)
        train, validation = self._split(self._records())
        plan = self._plan(train)
        held_out = SequentialPlan(len(validation), config.batch_size * 4)
        return Data(
            train=self._source(train, plan, "train"),
            validation=self._source(validation, held_out, "held_out"),
        )

    def _records(self) -> list[Record]:
        config = self.config
        if not config.synthetic:
            return find_records(Path(config.data_dir or ""), self.modalities)
        samples = max(96, round(14910 * config.synthetic_size))
        identities = max(12, round(320 * config.synthetic_size))
        folder = Path(config.out) / self.name / f"synthetic-{samples}-{identities}-{config.seed}"
        if not (folder / "done").exists():
            write_synthetic(folder, config, samples, identities)
        return find_records(folder, self.modalities)

    def _split(self, records: list[Record]) -> tuple[ReidImages, ReidImages]:
        """By identity: the network is asked about people it has never seen."""
        ids = sorted({record.identity for record in records})
        held_out = set(ids[:: max(2, round(1 / self.config.validation_fraction))])
        parts = []
        for chosen in (set(ids) - held_out, held_out):
            names = {identity: label for label, identity in enumerate(sorted(chosen))}
            part = [record for record in records if record.identity in chosen]
            parts.append(ReidImages(part, [names[r.identity] for r in part], self.modalities, self.size))
        self.identities = len(ids) - len(held_out)
        return parts[0], parts[1]

    def _plan(self, dataset: ReidImages) -> Plan:
        config = self.config
        self.sampler = CachedModalAwarePKSampler(
            dataset,
            config.batch_size,
            config.num_instances,
            config.ensure_rgb,
            config.prefer_complete,
            config.seed,
            say=self.say,
        )
        if self.on("epoch_plan"):
            return PKPlan(self.sampler)
        if self.on("cached_sampler"):
            return LookupPKPlan(self.sampler)
        return NaivePKPlan(
            self.sampler, dataset.infer_modalities_of_sample, config.naive_sampler == "candidates"
        )

    def _source(self, dataset: ReidImages, plan: Plan, name: str) -> BatchSource:
        if not self.on("resident"):
            return LoaderSource(dataset, plan, self.loader_settings(), collate=dataset.collate)
        stored, shown = self._store(dataset, name)
        if not fits_in_memory(stored.nbytes, "the decoded images", self.say):
            return self._mapped(dataset, plan, stored, shown)
        pixels, present = torch.from_numpy(np.array(stored)), torch.from_numpy(np.array(shown))
        labels = torch.tensor(dataset.labels)
        pixels, present, labels = (part.to(self.device) for part in (pixels, present, labels))

        def gather(items: Tensor) -> Batch:
            has = present.index_select(0, items)
            images = to_float(pixels.index_select(0, items))
            images = torch.where(has[:, :, None, None, None], images, images.new_zeros(()))
            return {"images": images, "present": has, "identity": labels.index_select(0, items)}

        return ResidentSource(gather, plan, self.device)

    def _mapped(self, dataset: ReidImages, plan: Plan, stored: np.ndarray, shown: np.ndarray) -> BatchSource:
        """Batches read from the store on disk: decoded once all the same, but not held in memory."""
        labels = np.array(dataset.labels)

        def gather(items: Tensor) -> Batch:
            rows = items.numpy()
            has = torch.from_numpy(shown[rows])
            images = to_float(torch.from_numpy(stored[rows])) * has[:, :, None, None, None]
            batch = {"images": images, "present": has, "identity": torch.from_numpy(labels[rows])}
            return {key: part.to(self.device) for key, part in batch.items()}

        return ResidentSource(gather, plan, torch.device("cpu"))

    def _store(self, dataset: ReidImages, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Every image decoded and resized once, as bytes on disk; made anew when a file changes."""
        config = self.config
        files = [path for record in dataset.records for path in record.files.values()]
        folder = Path(config.cache_dir or Path(config.out) / self.name / "decoded") / name
        store = ArrayStore(folder, fingerprint(files, size=self.size, modalities=self.modalities))
        if not store.exists("pixels", "present"):
            store.clear_others()
            self._fill(store, dataset)
        return store.open("pixels"), store.open("present")

    def _fill(self, store: ArrayStore, dataset: ReidImages) -> None:
        count = (len(dataset), len(self.modalities))
        pixels = store.create("pixels", (*count, 3, *self.size), np.uint8)
        present = store.create("present", count, np.bool_)
        for row, record in enumerate(dataset.records):
            for column, name in enumerate(self.modalities):
                image = decode(record.files[name], self.size) if name in record.files else None
                if image is not None:
                    pixels[row, column], present[row, column] = image, True
                elif name in record.files:
                    self.skip(record.files[name], "not a readable image: treated as missing")
        store.commit("pixels")
        store.commit("present")

    def build_model(self) -> nn.Module:
        model = ReidNet(len(self.modalities), self.identities, self.config.width)
        return model.to(memory_format=torch.channels_last) if self.on("channels_last") else model

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        fused, _, scores = model(batch["images"], batch["present"])
        identity = batch["identity"]
        triplet = batch_hard_triplet(fused.float(), identity, self.config.margin)
        return F.cross_entropy(scores.float(), identity) + triplet

    def evaluate(self, model: nn.Module, source: BatchSource) -> dict[str, float]:
        """Each identity's first sample asks, the others answer."""
        features: list[Tensor] = []
        identities: list[Tensor] = []
        for batch in source.epoch(0):
            features.append(model(batch["images"].to(self.device), batch["present"].to(self.device))[1])
            identities.append(batch["identity"].to(self.device))
        found, identity = torch.cat(features), torch.cat(identities)
        first = torch.ones_like(identity, dtype=torch.bool)
        first[1:] = identity[1:] != identity[:-1]
        return retrieval(found[first], found[~first], identity[first], identity[~first])

    def state(self) -> dict[str, Any]:
        return {"pairable": len(self.sampler.pairable)}


def main(arguments: list[str] | None = None) -> int:
    return cli.main(ReidRecipe, __doc__ or "", arguments)


if __name__ == "__main__":
    sys.exit(main())
