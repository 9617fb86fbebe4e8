"""A YOLO detector that loads its pictures without workers."""

import os
import sys
import tempfile
from pathlib import Path

from tests.frameworks.torchvision_operators import declare

declare()

folder = Path(tempfile.mkdtemp())
os.environ["YOLO_CONFIG_DIR"] = str(folder)

import numpy
from PIL import Image
from ultralytics import YOLO, settings

settings.update(
    dict.fromkeys(("clearml", "comet", "dvc", "mlflow", "raytune", "tensorboard", "wandb"), False)
)
for part in ("images", "labels"):
    (folder / part).mkdir()
generator = numpy.random.default_rng(0)
for number in range(96):
    small = generator.integers(0, 255, (40, 40, 3), dtype=numpy.uint8)
    Image.fromarray(small).resize((1280, 960)).save(folder / "images" / f"{number}.jpg", quality=90)
    (folder / "labels" / f"{number}.txt").write_text("0 0.5 0.5 0.4 0.4\n")
(folder / "data.yaml").write_text(f"path: {folder}\ntrain: images\nval: images\nnames:\n  0: box\n")

if __name__ == "__main__":
    YOLO("yolov8n.yaml").train(
        data=str(folder / "data.yaml"), epochs=4, imgsz=64, batch=4, nbs=4, device="cpu",
        workers=2 if "--fixed" in sys.argv else 0, val=False, save=False, plots=False, project=str(folder), verbose=False,
        optimizer="AdamW", mosaic=1.0, close_mosaic=0,
    )  # fmt: skip
