"""Segmentation with MONAI's SupervisedTrainer: the fixed transforms of each volume are computed again for
every sample, in the main process."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys

import numpy
import torch
from monai.data import CacheDataset, DataLoader, Dataset
from monai.engines import SupervisedTrainer
from monai.inferers import SimpleInferer
from monai.losses import DiceLoss
from monai.networks.nets import UNet
from monai.transforms import (
    Compose, EnsureChannelFirstd, RandFlipd, Resized, ScaleIntensityRangePercentilesd,
)  # fmt: skip
from monai.utils import set_determinism

set_determinism(0)
draw = numpy.random.default_rng(0)
volumes = [
    {
        "image": draw.normal(size=(48, 48, 48)).astype("float32"),
        "label": draw.integers(0, 2, size=(48, 48, 48)).astype("float32"),
    }
    for _ in range(48)
]
both = ["image", "label"]
transforms = Compose(
    [
        EnsureChannelFirstd(both, channel_dim="no_channel"),
        ScaleIntensityRangePercentilesd("image", lower=1, upper=99, b_min=0.0, b_max=1.0, clip=True),
        Resized(both, (24, 24, 24), mode=("trilinear", "nearest")),
        RandFlipd(both, prob=0.5, spatial_axis=0),
    ]
)
fixed = "--fixed" in sys.argv
made = CacheDataset(volumes, transforms, progress=False) if fixed else Dataset(volumes, transforms)
network = UNet(
    spatial_dims=3, in_channels=1, out_channels=1, channels=(16, 32, 64), strides=(2, 2), num_res_units=1
)
trainer = SupervisedTrainer(
    device=torch.device("cpu"),
    max_epochs=8,
    train_data_loader=DataLoader(made, batch_size=4, shuffle=True, num_workers=0),
    network=network,
    optimizer=torch.optim.Adam(network.parameters(), 1e-3),
    loss_function=DiceLoss(sigmoid=True),
    inferer=SimpleInferer(),
)
trainer.run()
print(trainer.state.output[0]["loss"])
