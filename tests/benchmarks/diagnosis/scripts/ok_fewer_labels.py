"""Four hundred labels and many pictures without (FixMatch): a trainer with callbacks, a project of several files."""

import sys

from ok_fewer_kit import callbacks
from ok_fewer_kit.data import Labelled, Unlabelled, make_pictures
from ok_fewer_kit.network import WideNet
from ok_fewer_kit.trainer import FixMatch, Trainer


def main(argv):
    settings = {"steps": 240, "width": 20, "seed": 64, "labelled": 20, "unlabelled": 60} | dict(
        (key, int(value)) for key, value in (one.split("=") for one in argv)
    )
    pictures, kinds = make_pictures(3000, settings["seed"])
    task = FixMatch(WideNet(3, settings["width"], 8))
    trainer = Trainer(
        task,
        [
            callbacks.Average(task.model, 0.995),
            callbacks.Warmup(20),
            callbacks.Journal("journal.csv", every=40),
        ],
    )
    trainer.fit(
        Labelled(pictures[:400], kinds[:400], settings["labelled"]),
        Unlabelled(pictures[400:2600], settings["unlabelled"]),
        settings["steps"],
    )
    average = trainer.callbacks[0].model.eval()
    print(f"average: {task.accuracy(average, pictures[2600:], kinds[2600:]):.3f} right")


if __name__ == "__main__":
    main(sys.argv[1:])
