"""Options of the reid trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainers.config import TrainConfig


@dataclass(kw_only=True)
class ReidConfig(TrainConfig):
    """Options of the re-identification trainer."""

    LEAST: ClassVar[dict[str, float]] = {"margin": 0}

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
