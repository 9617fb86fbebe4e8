"""The P×K sampler over other people's data sets, under our import path and the document's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import trainers
from trainers.datasets.cached_sampler import CachedModalAwarePKSampler
from trainers.datasets.metadata import describe
from trainers.errors import TrainerError

PEOPLE = [f"person {n % 6}" for n in range(48)]
SHOWN = [["RGB", "nir"] if n % 3 else ["RGB"] for n in range(48)]


class Listed:
    """Labels and modalities as lists, as torchvision-like data sets have them."""

    labels = PEOPLE
    sample_modalities = SHOWN

    def __len__(self) -> int:
        return len(self.labels)


class Recorded:
    """Dictionaries in `samples`."""

    samples = [{"pid": who, "modalities": has} for who, has in zip(PEOPLE, SHOWN, strict=True)]  # noqa: RUF012

    def __len__(self) -> int:
        return len(self.samples)


class Read:
    """Nothing but items: images by modality, None for a missing one."""

    def __len__(self) -> int:
        return len(PEOPLE)

    def __getitem__(self, index: int) -> dict[str, Any]:
        images = {"RGB": np.zeros(2), "nir": np.zeros(2) if "nir" in SHOWN[index] else None}
        return {"label": np.int64(index % 6), "images": images}


class Objects:
    """Records with attributes."""

    records = [  # noqa: RUF012
        SimpleNamespace(identity=n % 6, modality="rgb" if n // 6 % 2 else "nir") for n in range(48)
    ]

    def __len__(self) -> int:
        return len(self.records)


@pytest.mark.parametrize("dataset", [Listed(), Recorded(), Read(), Objects()])
def test_any_data_set_with_labels_and_modalities_is_sampled(dataset: Any) -> None:
    sampler = CachedModalAwarePKSampler(dataset, 16, 4, seed=1, say=lambda text: None)
    for batch in sampler:
        groups = [sampler.identities[batch[n : n + 4]] for n in range(0, 16, 4)]
        assert all(len(set(group)) == 1 for group in groups)
        assert all(sampler.rgb[batch[n : n + 4]].any() for n in range(0, 16, 4))


def test_lists_and_records_give_the_same_table() -> None:
    one, two = describe(Listed()), describe(Recorded())
    assert one.modalities == two.modalities == ("RGB", "nir")
    assert (one.identities == two.identities).all() and (one.present == two.present).all()


def test_a_data_set_that_tells_nothing_is_one_sentence() -> None:
    with pytest.raises(TrainerError, match="no identities and modalities in list"):
        describe([1, 2, 3])


@pytest.mark.slow
def test_it_is_imported_from_the_documents_path_too(tmp_path: Path) -> None:
    folder = str(Path(trainers.__file__).parent)
    code = "from datasets.cached_sampler import CachedModalAwarePKSampler as C; print(C.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": folder},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "CachedModalAwarePKSampler", done.stderr
