"""Recipes on files as users have them, and the engine against a hand-written loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.unit.trainers.helpers import make
from trainers.datasets import nifti
from trainers.errors import TrainerError
from trainers.tcn.data import simulate
from trainers.tcn.options import INPUTS, TARGETS


def test_tcn_reads_simulation_folders(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for number in range(3):
        folder = tmp_path / f"data_simulation_{number}"
        folder.mkdir()
        rows = simulate(300, 0.05, generator)
        header = f"{INPUTS},{TARGETS}"
        np.savetxt(folder / "run.csv", rows, delimiter=",", header=header, comments="")
    pattern = str(tmp_path / "data_simulation_*")
    result = make("tcn", tmp_path, synthetic=False, data_dir=pattern, epochs=2).fit()
    assert result.metrics["rmse"] > 0
    with pytest.raises(TrainerError, match="the physics residual needs the columns force"):
        make("tcn", tmp_path, synthetic=False, data_dir=pattern, input_columns="measured,damping,stiffness")
    free = make(
        "tcn",
        tmp_path,
        synthetic=False,
        data_dir=pattern,
        input_columns="measured,ambient",
        lambda_physics=0.0,
    )
    assert free.train_steps(1).losses


def test_tom500_reads_image_and_label_folders(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for number in range(4):
        labels = generator.integers(0, 3, (4, 16, 16)).astype(np.uint8)
        for part, data in (("imagesTr", (labels * 100).astype(np.int16)), ("labelsTr", labels)):
            (tmp_path / part).mkdir(exist_ok=True)
            suffix = "_0000.nii.gz" if part == "imagesTr" else ".nii.gz"
            nifti.write(tmp_path / part / f"case{number}{suffix}", data)
    trainer = make(
        "tom500", tmp_path / "out", synthetic=False, data_dir=str(tmp_path), num_classes=3, epochs=1
    )
    assert 0 <= trainer.fit().metrics["dice"] <= 1
    with pytest.raises(TrainerError, match="two usable volumes are the least"):
        make("tom500", tmp_path / "out", synthetic=False, data_dir=str(tmp_path), num_classes=2)


def test_reid_reads_modality_folders_and_says_where_it_looked(tmp_path: Path) -> None:
    for modality in ("rgb", "nir", "tir"):
        for identity in range(8):
            for sample in range(4):
                path = tmp_path / modality / f"person{identity}" / f"{sample}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new("RGB", (8, 16), (identity * 30, sample * 60, 99)).save(path)
    trainer = make("reid", tmp_path / "out", synthetic=False, data_dir=str(tmp_path), batch_size=8, epochs=1)
    assert 0 < trainer.fit().metrics["mAP"] <= 1
    with pytest.raises(TrainerError, match="has no folder thermal"):
        make("reid", tmp_path / "out", synthetic=False, data_dir=str(tmp_path), modalities="rgb,thermal")
    with pytest.raises(TrainerError, match="has no folder rgb, nir, tir"):
        make("reid", tmp_path / "out", synthetic=False, data_dir=str(tmp_path / "rgb"))


def test_sequence_names_the_columns_there_are(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(120, 2)).cumsum(0)
    np.savez(tmp_path / "days.npz", sales=rows[:, 0], price=rows[:, 1])
    path = str(tmp_path / "days.npz")
    with pytest.raises(TrainerError, match="no column 'value': there are sales, price"):
        make("sequence", tmp_path, synthetic=False, data_dir=path)
    trainer = make("sequence", tmp_path, synthetic=False, data_dir=path, target_column="sales")
    assert trainer.train_steps(2).losses


def test_the_engine_gives_the_losses_of_a_bare_loop(tmp_path: Path) -> None:
    engine = make("sequence", tmp_path, rung="naive", epochs=2)
    bare = make("sequence", tmp_path, rung="naive")
    model, recipe, losses = bare.model, bare.recipe, []
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    for epoch in range(2):
        for batch in bare.data.train.epoch(epoch):
            optimizer.zero_grad(set_to_none=False)
            loss = recipe.loss(model, batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert engine.fit().losses == losses
