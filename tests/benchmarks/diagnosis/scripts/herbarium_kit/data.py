import io

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.utils.data import Dataset

from .registry import DATASETS


class RandomLeafCrop:
    """Decoded, turned, cut somewhere else each time, and brought to one size."""

    def __init__(self, size, scale=(0.5, 1.0)):
        self.size, self.scale = size, scale

    def __call__(self, raw, rng):
        picture = Image.open(io.BytesIO(raw)).convert("RGB")
        picture = picture.rotate(float(rng.uniform(-15, 15)), resample=Image.Resampling.BILINEAR)
        side = int(picture.width * rng.uniform(*self.scale))
        left, top = (int(v) for v in rng.integers(0, picture.width - side + 1, 2))
        picture = picture.crop((left, top, left + side, top + side)).resize((self.size, self.size))
        return ImageOps.mirror(picture) if rng.random() < 0.5 else picture


@DATASETS.register
class Herbarium(Dataset):
    """Scanned sheets as JPEG, as they come from the scanner."""

    def __init__(self, sheets, species, size, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(species, size=sheets)
        self.files = [self._scan(rng, label) for label in self.labels]
        self.transform = RandomLeafCrop(size)

    @staticmethod
    def _scan(rng, label):
        small = rng.integers(0, 255, (8, 8, 3)).astype(np.uint8)
        small[label % 8, :, label % 3] = 250
        target = io.BytesIO()
        Image.fromarray(small).resize((160, 160)).save(target, format="JPEG", quality=90)
        return target.getvalue()

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        rng = np.random.default_rng(int(torch.randint(2**31, (1,))))
        picture = np.asarray(self.transform(self.files[i], rng), dtype=np.float32) / 255
        return torch.from_numpy(picture).permute(2, 0, 1), int(self.labels[i])
