"""Every image decoded and resized once, as bytes on disk; batches are gathered from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from trainers.datasets.cache import ArrayStore, fingerprint
from trainers.datasets.source import Batch
from trainers.reid.data import ReidImages, decode, to_float

Gather = Callable[[Tensor], Batch]


class DecodedImages:
    """The store of one split; made anew when a file changes."""

    def __init__(self, folder: Path, dataset: ReidImages) -> None:
        self.dataset = dataset
        files = [path for record in dataset.records for path in record.files.values()]
        key = fingerprint(files, size=dataset.size, modalities=dataset.modalities)
        store = ArrayStore(folder, key)
        if not store.exists("pixels", "present"):
            store.clear_others()
            self._fill(store)
        self.pixels, self.present = store.open("pixels"), store.open("present")

    def _fill(self, store: ArrayStore) -> None:
        dataset = self.dataset
        count = (len(dataset), len(dataset.modalities))
        pixels = store.create("pixels", (*count, 3, *dataset.size), np.uint8)
        present = store.create("present", count, np.bool_)
        for row, record in enumerate(dataset.records):
            for column, name in enumerate(dataset.modalities):
                image = decode(record.files[name], dataset.size) if name in record.files else None
                if image is not None:
                    pixels[row, column], present[row, column] = image, True
        store.commit("pixels")
        store.commit("present")

    def resident(self, device: torch.device, by_pixel: Callable[[], bool]) -> Gather:
        """Batches from tensors on the device. `by_pixel`: whether the model wants them one modality after the
        other with the channels of a pixel together; they are kept so, for it takes none of a batch's time."""
        pixels = torch.from_numpy(np.ascontiguousarray(self.pixels.transpose(1, 0, 3, 4, 2))).to(device)
        present = torch.from_numpy(np.array(self.present)).to(device)
        labels = torch.tensor(self.dataset.labels, device=device)

        def gather(items: Tensor) -> Batch:
            has = present.index_select(0, items)
            picked = pixels.index_select(1, items).permute(1, 0, 4, 2, 3)
            images = to_float(picked if by_pixel() else picked.contiguous())
            images.masked_fill_(~has[:, :, None, None, None], 0.0)
            return {"images": images, "present": has, "identity": labels.index_select(0, items)}

        return gather

    def mapped(self, device: torch.device) -> Gather:
        """Batches read from disk: decoded once all the same, but not held in memory."""
        labels = np.array(self.dataset.labels)

        def gather(items: Tensor) -> Batch:
            rows = items.numpy()
            has = torch.from_numpy(self.present[rows])
            images = to_float(torch.from_numpy(self.pixels[rows])) * has[:, :, None, None, None]
            batch = {"images": images, "present": has, "identity": torch.from_numpy(labels[rows])}
            return {key: part.to(device) for key, part in batch.items()}

        return gather
