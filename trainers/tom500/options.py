"""Options of the tom500 trainer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from trainers.config import TrainConfig


@dataclass(kw_only=True)
class Tom500Config(TrainConfig):
    """Options of the TOM500 trainer."""

    LEAST: ClassVar[dict[str, float]] = {"num_classes": 2}

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
