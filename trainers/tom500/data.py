"""Volumes and their slices: read from NIfTI files, or generated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import Dataset

from trainers.datasets import nifti, tables
from trainers.datasets.source import Batch
from trainers.errors import TrainerError

Case = tuple[Path, Path]


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
    if not np.isfinite(image).all():
        raise nifti.NiftiError("NaN or infinity in the image")
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


def fit_slice(plane: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The slice in the upper left corner of `size`; around it its lowest value, which is background."""
    if plane.shape == size:
        return plane
    canvas = np.full(size, plane.min() if plane.dtype.kind == "f" else 0, plane.dtype)
    canvas[: plane.shape[0], : plane.shape[1]] = plane
    return canvas


class NaiveSlices(Dataset[Batch]):
    """A slice means: inflate the volume, normalise it, take one plane; again in every epoch."""

    def __init__(
        self, cases: list[Case], index: list[tuple[int, int]], classes: int, size: tuple[int, int]
    ) -> None:
        self.cases, self.index, self.classes, self.size = cases, index, classes, size

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, item: int) -> Batch:
        case, plane = self.index[item]
        image, labels = load_case(self.cases[case], self.classes)
        return _sample(image[plane], labels[plane], self.size)


class CachedSlices(Dataset[Batch]):
    """Volumes decoded once and kept (S1.2)."""

    def __init__(
        self,
        volumes: list[tuple[np.ndarray, np.ndarray]],
        index: list[tuple[int, int]],
        size: tuple[int, int],
    ) -> None:
        self.volumes, self.index, self.size = volumes, index, size

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, item: int) -> Batch:
        case, plane = self.index[item]
        image, labels = self.volumes[case]
        return _sample(image[plane], labels[plane], self.size)


def _sample(image: np.ndarray, labels: np.ndarray, size: tuple[int, int]) -> Batch:
    image, labels = fit_slice(image, size), fit_slice(labels, size)
    return {"image": torch.from_numpy(image[None]), "labels": torch.from_numpy(labels.astype(np.int64))}
