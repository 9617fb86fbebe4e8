"""Which plant is on the sheet: a project of several files, put together from one configuration."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from herbarium_kit import data, models  # noqa: F401 (they register themselves)
from herbarium_kit.runner import EpochRunner

config = dict(
    seed=8,
    epochs=9,
    dataset=dict(type="Herbarium", sheets=480, species=20, size=64, seed=8),
    dataloader=dict(batch_size=32, num_workers=0),
    model=dict(type="LeafNet", width=16, species=20),
    optimizer=dict(lr=0.05, momentum=0.9, weight_decay=1e-4),
    hooks=[dict(type="TextLogger", interval=40), dict(type="LrDecay", gamma=0.9)],
)

if __name__ == "__main__":
    if "--fixed" in sys.argv:
        config["dataloader"].update(num_workers=2, persistent_workers=True)
    EpochRunner(config).run()
