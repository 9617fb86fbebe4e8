"""Generated volumes: ellipsoids that brightness alone cannot tell apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trainers.datasets import nifti
from trainers.tom500.options import Tom500Config

NOISE, CONTRAST, SHADING = 50.0, 90.0, 60.0


def write_synthetic(folder: Path, volumes: int, config: Tom500Config) -> None:
    """Volumes of the asked-for size; those already there are kept."""
    for number in range(volumes):
        path = folder / "images" / f"case{number:04d}.nii.gz"
        if path.exists():
            continue
        labels, image = make_volume(np.random.default_rng((config.seed, number)), config)
        for part, data in (("labels", labels), ("images", image)):  # images last: they say "complete"
            (folder / part).mkdir(parents=True, exist_ok=True)
            nifti.write(folder / part / path.name, data, level=3)


def make_volume(generator: np.random.Generator, config: Tom500Config) -> tuple[np.ndarray, np.ndarray]:
    """Labels and image. Odd classes are large and even ones small, and neighbouring classes are equally
    bright; a shading across the volume and noise hide what brightness would tell."""
    shape = (config.slices, config.image_size, config.image_size)
    axes = [np.linspace(-1, 1, n, dtype=np.float32) for n in shape]
    grid = np.meshgrid(*axes, indexing="ij", sparse=True)
    labels = np.zeros(shape, np.uint8)
    for label in range(1, config.num_classes):
        center = generator.uniform(-0.6, 0.6, 3)
        radius = generator.uniform(0.3, 0.5, 3) if label % 2 else generator.uniform(0.12, 0.2, 3)
        distance = sum(((axis - c) / r) ** 2 for axis, c, r in zip(grid, center, radius, strict=True))
        labels[np.asarray(distance) < 1] = label
    slope = generator.uniform(-SHADING, SHADING, 3)
    shading = sum(axis * s for axis, s in zip(grid, slope, strict=True))
    image = 300.0 + CONTRAST * ((labels + 1) // 2) + shading + generator.normal(0, NOISE, shape)
    return labels, image.astype(np.int16)
