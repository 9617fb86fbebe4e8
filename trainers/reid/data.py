"""Samples with images in several modalities: found, decoded, collated, or generated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torch.utils.data import Dataset

from trainers.datasets.cache import fingerprint
from trainers.datasets.source import Batch
from trainers.errors import TrainerError

SUFFIXES = {".jpg", ".jpeg", ".png", ".bmp"}
BROKEN = (OSError, UnidentifiedImageError, SyntaxError, ValueError, Image.DecompressionBombError)


@dataclass(frozen=True)
class Record:
    """One sample: whose it is, and a file for each modality it has."""

    identity: int
    files: dict[str, Path]


def find_records(folder: Path, modalities: tuple[str, ...]) -> list[Record]:
    """All samples of the folder, in a stable order."""
    missing = [name for name in modalities if not (folder / name).is_dir()]
    if missing:
        there = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
        raise TrainerError(
            f"{folder} has no folder {', '.join(missing)}",
            hint=f"there are: {', '.join(there) or 'none'}; --modalities names the folders to use",
        )
    found: dict[tuple[str, str], dict[str, Path]] = {}
    for modality in modalities:
        for path in (folder / modality).glob("*/*"):
            if path.suffix.lower() in SUFFIXES:
                found.setdefault((path.parent.name, path.stem), {})[modality] = path
    if not found:
        raise TrainerError(f"no image under {folder}/({'|'.join(modalities)})/IDENTITY/")
    names = {name: number for number, name in enumerate(sorted({identity for identity, _ in found}))}
    return [Record(names[identity], files) for (identity, _), files in sorted(found.items())]


def without_broken(
    records: list[Record], folder: Path, skip: Callable[[Path | str, str], None]
) -> list[Record]:
    """The records without files that cannot be decoded; what was found is kept in `folder`.

    Every rung asks here, so that all count the same files and draw the same batches.
    """
    files = [path for record in records for path in record.files.values()]
    kept = folder / f"broken-{fingerprint(files)}.json"
    if not kept.exists():
        broken = [str(path) for path in files if not readable(path)]
        folder.mkdir(parents=True, exist_ok=True)
        temporary = kept.with_suffix(f".tmp{os.getpid()}")
        temporary.write_text(json.dumps(broken), encoding="utf-8")
        temporary.replace(kept)
    bad = set(json.loads(kept.read_text(encoding="utf-8")))
    for path in sorted(bad):
        skip(path, "not a readable image: treated as missing")
    cleaned = [
        Record(r.identity, {name: path for name, path in r.files.items() if str(path) not in bad})
        for r in records
    ]
    return [record for record in cleaned if record.files]


def readable(path: Path) -> bool:
    """Whether the whole file decodes; a JPEG at an eighth of its size, which reads all of it too."""
    try:
        with Image.open(path) as image:
            image.draft("RGB", (1, 1))
            image.load()
    except BROKEN:
        return False
    return True


def decode(path: Path, size: tuple[int, int]) -> np.ndarray | None:
    """One image as (3, height, width) bytes; None when the file has broken since it was checked."""
    try:
        with Image.open(path) as image:
            small = image.convert("RGB").resize((size[1], size[0]), Image.Resampling.BILINEAR)
    except BROKEN:
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
