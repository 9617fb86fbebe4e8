"""Generated samples: people who are hard to tell apart before training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from trainers.options import listed
from trainers.reid.options import ReidConfig

HEIGHT, WIDTH = 256, 128


def write_synthetic(folder: Path, config: ReidConfig, samples: int, identities: int) -> None:
    """Samples of all identities in turn; some lack a modality, every tenth identity has no RGB."""
    modalities = listed("modalities", config.modalities)
    for number in range(samples):
        identity = number % identities
        generator = np.random.default_rng((config.seed, number))
        shown = [not (name == "rgb" and identity % 10 == 9) for name in modalities]
        if number >= identities:  # an identity's first sample shows all it has
            shown = [has and generator.random() >= 0.1 for has in shown]
        for modality, has in zip(modalities, shown, strict=True):
            pixels = draw(identity, modality == "rgb", generator)
            if has:
                path = folder / modality / f"id{identity:04d}" / f"s{number:06d}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(path, quality=90)
    (folder / "done").touch()


def draw(identity: int, colour: bool, generator: np.random.Generator) -> np.ndarray:
    """One picture. What tells people apart is a pattern; light, colour cast, a bar that hides a part and
    noise vary from picture to picture, and an untrained network sees mostly these."""
    pattern = np.random.default_rng(identity).normal(0, 40, (8, 4, 3))
    cast = generator.normal(0, 25, (1, 1, 3))
    light = generator.normal(0, 25) + generator.normal(0, 25) * np.linspace(-1, 1, 8)[:, None, None]
    small = 128 + pattern + cast + light
    row = int(generator.integers(0, 7))
    small[row : row + 2] = generator.uniform(60, 200)
    pixels = small.repeat(HEIGHT // 8, 0).repeat(WIDTH // 4, 1) + generator.normal(0, 25, (HEIGHT, WIDTH, 3))
    pixels = pixels if colour else pixels.mean(2, keepdims=True).repeat(3, 2)
    return np.asarray(pixels.clip(0, 255), np.uint8)
