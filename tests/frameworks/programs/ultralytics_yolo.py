"""Ultralytics: a YOLO detector from its own description, on pictures made here."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.frameworks.reference import REST, Reference


def pictures(folder: Path, count: int) -> Path:
    """A data set of grey pictures with one box each."""
    import numpy
    from PIL import Image

    for part in ("images", "labels"):
        (folder / part).mkdir()
    generator = numpy.random.default_rng(0)
    for number in range(count):
        pixels = generator.integers(0, 255, (64, 64, 3), dtype=numpy.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
        (folder / "labels" / f"{number}.txt").write_text("0 0.5 0.5 0.4 0.4\n")
    described = folder / "data.yaml"
    described.write_text(f"path: {folder}\ntrain: images\nval: images\nnames:\n  0: box\n")
    return described


def train(reference: Reference, with_callback: bool) -> None:
    import torch
    from ultralytics import YOLO
    from ultralytics.data.build import InfiniteDataLoader
    from ultralytics.engine.trainer import BaseTrainer
    from ultralytics.nn.tasks import DetectionModel

    folder = Path(tempfile.mkdtemp())
    iterate = InfiniteDataLoader.__iter__
    InfiniteDataLoader.__iter__ = lambda loader: reference.batches(iterate(loader))
    reference.begins(DetectionModel, "loss", "forward")
    reference.during(BaseTrainer, "validate", "validate", whole=True)
    reference.during(BaseTrainer, "save_model", "checkpoint", whole=True)
    reference.during(torch.Tensor, "backward", "backward", then=REST)
    for optimizer in (torch.optim.AdamW, torch.optim.SGD):
        reference.during(optimizer, "step", "optimizer", then=REST)
    detector = YOLO("yolov8n.yaml")
    detector.train(
        data=str(pictures(folder, 32)), epochs=3, imgsz=64, batch=4, nbs=4, workers=0, device="cpu",
        plots=False, project=str(folder), verbose=False, optimizer="AdamW",
    )  # fmt: skip
