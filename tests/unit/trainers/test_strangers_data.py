"""Strangers' data: dates, gaps, text, odd sizes, corrupt files. At least one test per recipe."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.unit.trainers.helpers import make
from trainers.datasets import nifti
from trainers.datasets.tables import TableSettings, read_tables
from trainers.errors import TrainerError
from trainers.reid.data import ReidImages, find_records
from trainers.reid.store import DecodedImages
from trainers.tcn.options import INPUTS, TARGETS

ROWS = 150


def write_days(path: Path, *, gaps: bool = False, turned: bool = False) -> str:
    """A sales table with a date, a text column and, with `gaps`, empty cells."""
    generator = np.random.default_rng(0)
    value, price = generator.normal(size=(2, ROWS)).cumsum(1)
    days = np.datetime64("2023-01-01") + np.arange(ROWS)
    lines = []
    for n in range(ROWS):
        cell = "" if gaps and n % 17 == 3 else f"{value[n]:.4f}"
        lines.append(f"{days[n]},{cell},{price[n]:.4f},shop {n % 3}")
    path.write_text("\n".join(["date,value,price,shop", *(lines[::-1] if turned else lines)]) + "\n")
    return str(path)


def read(path: str, **settings: Any) -> tuple[np.ndarray, list[str], list[str]]:
    said: list[str] = []
    found, names = read_tables(
        [Path(path)], None, TableSettings(**settings), lambda p, why: said.append(why), said.append
    )
    return found[0], names, said


# ── tables: sequence, graph, tcn ──


def test_dates_order_the_rows_and_text_is_left_out(tmp_path: Path) -> None:
    plain, names, said = read(write_days(tmp_path / "a.csv"))
    assert names == ["value", "price"]
    assert said == ["a.csv: text column left out: shop"]
    turned, _, said = read(write_days(tmp_path / "b.csv", turned=True))
    assert np.array_equal(plain, turned)
    assert "b.csv: rows put into the order of their dates" in said


def test_dates_become_features_when_asked_for(tmp_path: Path) -> None:
    rows, names, _ = read(write_days(tmp_path / "a.csv"), dates="features")
    assert names[2:] == ["weekday_sin", "weekday_cos", "yearday_sin", "yearday_cos"]
    assert np.allclose(rows[0, 2:4], rows[7, 2:4])
    assert not np.allclose(rows[0, 2:4], rows[3, 2:4])


@pytest.mark.parametrize("fill", ["forward", "linear", "mean"])
def test_empty_cells_are_filled_only_when_asked_for(fill: str, tmp_path: Path) -> None:
    path = write_days(tmp_path / "a.csv", gaps=True)
    with pytest.raises(TrainerError, match="empty cells in column value; --fill"):
        read(path)
    rows, _, said = read(path, fill=fill)
    assert np.isfinite(rows).all() and len(rows) == ROWS
    assert any("9 empty cells in column value" in text for text in said)


def test_filling_forward_repeats_and_dropping_leaves_out(tmp_path: Path) -> None:
    path = write_days(tmp_path / "a.csv", gaps=True)
    rows, *_ = read(path, fill="forward")
    assert rows[3, 0] == rows[2, 0]
    assert len(read(path, fill="drop")[0]) == ROWS - 9


def test_semicolons_and_decimal_commas_are_understood(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("tag;wert\n01.02.2024;1,5\n02.02.2024;2,5\n", encoding="utf-8-sig")
    rows, names, _ = read(str(tmp_path / "a.csv"))
    assert names == ["wert"] and rows.ravel().tolist() == [1.5, 2.5]


def test_a_file_in_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("größe,value\n1,2\n".encode("latin-1"))
    with pytest.raises(TrainerError, match="not text in UTF-8"):
        read(str(path))


def test_objects_in_an_npz_are_named_without_bad_advice(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{}, None], dtype=object))
    with pytest.raises(TrainerError) as caught:
        read(str(tmp_path / "a.npz"))
    assert "Python objects" in caught.value.sentence
    assert "allow_pickle" not in f"{caught.value.sentence} {caught.value.hint}"


@pytest.mark.parametrize("recipe", ["sequence", "graph"])
def test_series_with_dates_and_gaps_train(recipe: str, tmp_path: Path) -> None:
    path = write_days(tmp_path / "days.csv", gaps=True)
    options = {"synthetic": False, "data_dir": path, "dates": "features"}
    with pytest.raises(TrainerError, match="empty cells"):
        make(recipe, tmp_path, **options)
    trainer = make(recipe, tmp_path, **options, fill="linear", epochs=1)
    assert trainer.fit().metrics["rmse"] > 0


def test_simulations_with_dates_gaps_and_a_corrupt_file_train(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    names = f"time,{INPUTS},{TARGETS}".split(",")
    for number in range(3):
        rows = generator.normal(size=(120, len(names) - 1))
        lines = [
            f"2024-01-01T00:{n // 60:02d}:{n % 60:02d}," + ",".join("" if n == 7 else f"{v:.3f}" for v in row)
            for n, row in enumerate(rows)
        ]
        (tmp_path / f"run{number}.csv").write_text("\n".join([",".join(names), *lines]))
    (tmp_path / "run3.csv").write_bytes(b"\xff\xfe\x00broken")
    trainer = make("tcn", tmp_path, synthetic=False, data_dir=str(tmp_path), fill="forward", epochs=1)
    assert trainer.fit().skipped_files == 1


# ── tom500 ──


def write_volumes(folder: Path, shapes: list[tuple[int, int, int]]) -> None:
    generator = np.random.default_rng(0)
    for number, shape in enumerate(shapes):
        labels = generator.integers(0, 3, shape).astype(np.uint8)
        for part, data in (("images", (labels * 100 + 5).astype(np.int16)), ("labels", labels)):
            (folder / part).mkdir(parents=True, exist_ok=True)
            nifti.write(folder / part / f"case{number}.nii.gz", data)


@pytest.mark.parametrize("shapes", [[(3, 50, 44)] * 3, [(3, 50, 44), (2, 37, 41), (4, 16, 60)]])
def test_volumes_of_odd_and_different_sizes_train_alike_in_every_rung(
    shapes: list[tuple[int, int, int]], tmp_path: Path
) -> None:
    write_volumes(tmp_path / "data", shapes)
    losses = {}
    for rung in ("naive", "document", "best"):
        trainer = make(
            "tom500",
            tmp_path,
            synthetic=False,
            data_dir=str(tmp_path / "data"),
            num_classes=3,
            depth=3,
            rung=rung,
        )
        losses[rung] = trainer.train_steps(2).losses
        trainer.validate()
    assert losses["document"] == pytest.approx(losses["naive"], rel=1e-3)
    assert losses["best"] == pytest.approx(losses["naive"], rel=1e-3)


def test_a_cut_and_a_poisoned_volume_are_skipped_in_every_rung(tmp_path: Path) -> None:
    write_volumes(tmp_path / "data", [(3, 16, 16)] * 5)
    cut = tmp_path / "data" / "images" / "case1.nii.gz"
    cut.write_bytes(cut.read_bytes()[:60])
    nifti.write(tmp_path / "data" / "images" / "case2.nii.gz", np.full((3, 16, 16), np.nan, np.float32))
    for rung in ("naive", "document", "best"):
        trainer = make(
            "tom500", tmp_path, synthetic=False, data_dir=str(tmp_path / "data"), num_classes=3, rung=rung
        )
        assert trainer.result.skipped_files == 2


# ── reid ──


def write_people(folder: Path, modalities: tuple[str, ...] = ("rgb", "nir", "tir")) -> None:
    for modality in modalities:
        for identity in range(8):
            for sample in range(4):
                path = folder / modality / f"person{identity}" / f"{sample}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                size = (8 + identity, 16 + sample)  # every picture a different size
                Image.new("RGB", size, (identity * 30, sample * 60, 99)).save(path)


def test_corrupt_images_are_counted_alike_and_give_the_same_batches(tmp_path: Path) -> None:
    write_people(tmp_path / "data")
    broken = sorted((tmp_path / "data" / "nir").glob("*/*.png"))[3:6]
    broken[0].write_bytes(b"not an image")
    broken[1].write_bytes(broken[1].read_bytes()[:30])
    broken[2].write_bytes(b"")
    losses, skipped = {}, {}
    for rung in ("naive", "document", "best"):
        trainer = make(
            "reid", tmp_path, synthetic=False, data_dir=str(tmp_path / "data"), batch_size=8, rung=rung
        )
        skipped[rung] = sorted(trainer.recipe.skipped)
        losses[rung] = trainer.train_steps(3).losses
    assert skipped["naive"] == skipped["document"] == skipped["best"] == [str(path) for path in broken]
    assert losses["document"] == pytest.approx(losses["naive"], rel=1e-3)
    assert losses["best"] == pytest.approx(losses["naive"], rel=1e-3)


def test_resident_images_are_those_on_disk_however_they_are_laid_out(tmp_path: Path) -> None:
    write_people(tmp_path / "data", modalities := ("rgb", "nir"))
    (tmp_path / "data" / "nir" / "person3" / "1.png").unlink()
    records = find_records(tmp_path / "data", modalities)
    dataset = ReidImages(records, [record.identity for record in records], modalities, (16, 8))
    images = DecodedImages(tmp_path / "kept", dataset)
    items, cpu = torch.tensor([13, 0, 7, 13]), torch.device("cpu")
    expected = images.mapped(cpu)(items)
    assert not expected["present"].all() and expected["images"].any()
    for by_pixel in (False, True):
        found = images.resident(cpu, partial(bool, by_pixel))(items)
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        assert found["images"].is_contiguous() is not by_pixel


def test_a_missing_modality_is_named_with_those_there_are(tmp_path: Path) -> None:
    write_people(tmp_path / "data", ("rgb", "nir"))
    with pytest.raises(TrainerError, match="has no folder tir") as caught:
        make("reid", tmp_path, synthetic=False, data_dir=str(tmp_path / "data"))
    assert "nir, rgb" in (caught.value.hint or "")
