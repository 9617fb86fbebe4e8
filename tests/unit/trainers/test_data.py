"""Readers, caches, windows, sampler, graphs: right on good data, one sentence on bad."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.unit.trainers.helpers import make
from trainers.datasets import cache, knn, nifti, tables, windows
from trainers.datasets.cached_sampler import CachedModalAwarePKSampler, LookupPKPlan, NaivePKPlan, PKPlan
from trainers.datasets.plan import PlanSampler, ShuffledPlan
from trainers.datasets.scaler import StandardScaler
from trainers.datasets.source import LoaderSettings, move_batch_to_device, platform_prefetch, platform_workers
from trainers.errors import TrainerError

# ── NIfTI ──


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.float32, np.uint16])
@pytest.mark.parametrize("name", ["v.nii", "v.nii.gz"])
def test_a_volume_survives_writing_and_reading(kind: type, name: str, tmp_path: Path) -> None:
    volume: np.ndarray = np.random.default_rng(0).integers(0, 200, (3, 5, 7)).astype(kind)
    nifti.write(tmp_path / name, volume)
    again = nifti.read(tmp_path / name)
    assert again.dtype == kind
    assert (again == volume).all()


def test_big_endian_and_scaled_volumes_are_understood(tmp_path: Path) -> None:
    import struct

    header = bytearray(352)
    struct.pack_into(">i", header, 0, 348)
    struct.pack_into(">8h", header, 40, 3, 2, 1, 2, 1, 1, 1, 1)
    struct.pack_into(">2h", header, 70, 4, 16)
    struct.pack_into(">3f", header, 108, 352, 0.5, 10)
    header[344:348] = b"n+1\0"
    (tmp_path / "v.nii").write_bytes(bytes(header) + np.array([2, 4, 6, 8], ">i2").tobytes())
    assert nifti.read(tmp_path / "v.nii").ravel().tolist() == [11, 12, 13, 14]


@pytest.mark.parametrize("damage", [lambda raw: raw[:100], lambda raw: raw[:-300], lambda raw: b"x" * 500])
def test_a_damaged_volume_says_what_is_wrong(damage, tmp_path: Path) -> None:
    path = tmp_path / "v.nii"
    nifti.write(path, np.zeros((4, 16, 16), np.int16))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(nifti.NiftiError):
        nifti.read(path)


def test_corrupt_volumes_are_skipped_and_counted(tmp_path: Path) -> None:
    make("tom500", tmp_path, rung="naive")
    folder = next((tmp_path / "tom500").glob("generated-*"))
    broken = sorted((folder / "images").iterdir())[0]
    broken.write_bytes(broken.read_bytes()[:50])
    trainer = make("tom500", tmp_path, rung="best")
    assert list(trainer.recipe.skipped) == [str(broken)]
    assert trainer.train_steps(1).skipped_files == 1


# ── tables ──


def write_csv(path: Path, columns: str, rows: int = 30) -> None:
    count = len(columns.split(","))
    lines = [",".join(f"{(r * 7 + c) % 11}" for c in range(count)) for r in range(rows)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([columns, *lines]))


def test_tables_come_from_every_folder_the_glob_names(tmp_path: Path) -> None:
    write_csv(tmp_path / "data_simulation_1" / "a.csv", "x,y")
    np.savez(tmp_path / "data_simulation_1" / "b.npz", x=np.arange(20.0), y=np.arange(20.0))
    (tmp_path / "data_simulation_2").mkdir()
    np.savez(tmp_path / "data_simulation_2" / "c.npz", data=np.ones((25, 2)), columns=np.array(["y", "x"]))
    files = tables.find_files(str(tmp_path / "data_simulation_*"))
    settings = tables.TableSettings(min_rows=5)
    found, _ = tables.read_tables(files, ["y", "x"], settings, lambda path, why: pytest.fail(why))
    assert [part.shape for part in found] == [(30, 2), (20, 2), (25, 2)]


def test_wrong_columns_name_those_there_are(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", "speed,force")
    with pytest.raises(TrainerError, match="has no column damping; it has speed, force"):
        tables.read_tables(
            [tmp_path / "a.csv"], ["force", "damping"], tables.TableSettings(), lambda path, why: None
        )


def test_unreadable_short_and_infinite_tables_are_skipped(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", "x,y")
    (tmp_path / "b.csv").write_text("x,y\n1,2\nthree,4\n")
    write_csv(tmp_path / "c.csv", "x,y", rows=3)
    (tmp_path / "d.npz").write_bytes(b"PK not a zip")
    (tmp_path / "e.csv").write_text("x,y\n" + "1,nan\n" * 20)
    skipped: dict[str, str] = {}
    files = tables.find_files(str(tmp_path))
    settings = tables.TableSettings(min_rows=10)
    found, _ = tables.read_tables(
        files, ["x", "y"], settings, lambda path, why: skipped.update({path.name: why})
    )
    assert len(found) == 1
    assert sorted(skipped) == ["b.csv", "c.csv", "d.npz", "e.csv"]


def test_missing_data_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TrainerError, match="matches nothing"):
        tables.find_files(str(tmp_path / "none_*"))
    with pytest.raises(TrainerError, match=r"no \.csv or \.npz file"):
        tables.find_files(str(tmp_path))


# ── windows, plans, loaders ──


def test_windows_never_cross_a_table_or_the_split() -> None:
    train, validation = windows.split_starts([20, 30], 5, 0.2)
    rows: dict[str, set[int]] = {"train": set(), "validation": set()}
    for name, starts in (("train", train), ("validation", validation)):
        for at in starts:
            span = range(at, at + 5)
            assert span[-1] < 20 or span[0] >= 20
            rows[name] |= set(span)
    assert not rows["train"] & rows["validation"]
    seen = np.flatnonzero(windows.train_rows([20, 30], 5, 0.2))
    assert rows["train"] <= set(seen.tolist())


def test_gathered_windows_are_the_slices() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    store = windows.WindowStore(rows, 7, torch.device("cpu"))
    got = store.gather(torch.tensor([0, 5, 33]))
    assert (got.numpy() == np.stack([rows[at : at + 7] for at in (0, 5, 33)])).all()


def test_ranks_share_every_batch_and_a_plan_starts_anywhere() -> None:
    whole = ShuffledPlan(103, 10, seed=1)
    parts = [ShuffledPlan(103, 10, seed=1) for _ in range(2)]
    for rank, part in enumerate(parts):
        part.share(rank, 2)
    batches = [batch.tolist() for batch in whole.iterate(4)]
    shared = [a.tolist() + b.tolist() for a, b in zip(parts[0].iterate(4), parts[1].iterate(4), strict=True)]
    assert shared[:-1] == batches[:-1]
    assert shared[-1] == batches[-1][:2]  # of three samples, two ranks can share only two
    assert [batch.tolist() for batch in whole.iterate(4, 30)] == batches[3:]
    sampler = PlanSampler(whole)
    sampler.at(4, 30)
    assert list(sampler) == batches[3:] and len(sampler) == len(batches) - 3


def test_loader_settings_never_make_an_illegal_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    assert LoaderSettings(num_workers=0, prefetch_factor=8).arguments() == {
        "num_workers": 0,
        "pin_memory": False,
    }
    assert LoaderSettings(num_workers=3).arguments()["prefetch_factor"] == 3
    monkeypatch.setattr("platform.system", lambda: "Windows")
    assert (platform_workers(4), platform_prefetch(2)) == (2, 1)


def test_nested_batches_move_whole() -> None:
    batch = {"a": torch.ones(2), "b": [torch.ones(1), ("x", torch.ones(3))], "c": 5}
    moved = move_batch_to_device(batch, "meta")
    assert moved["a"].is_meta and moved["b"][1][1].is_meta
    assert moved["c"] == 5 and moved["b"][1][0] == "x"


def test_our_scaler_and_the_librarys_give_the_same_bits() -> None:
    rows = np.random.default_rng(0).normal(3, 2, (50, 4))
    scaler = StandardScaler().fit(rows)
    library = scaler.as_library()
    assert type(library).__module__.startswith("sklearn")
    assert (library.transform(rows) == scaler.transform(rows)).all()
    with pytest.raises(ValueError, match="NaN"):
        scaler.transform(np.full((2, 4), np.nan))


# ── caches ──


def test_a_cache_that_does_not_fit_is_said_and_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache, "available_memory", lambda: 1000)
    said: list[str] = []
    assert not cache.fits_in_memory(10_000, "the window cache", said.append)
    assert "going on without the cache" in said[0]
    trainer = make("tcn", tmp_path, rung="document")
    assert trainer.train_steps(1).losses
    assert trainer.data.train.loader.dataset.cache is None  # type: ignore[attr-defined]


def test_a_full_disk_is_found_before_writing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100))
    with pytest.raises(TrainerError, match="the disk has"):
        cache.ArrayStore(tmp_path, "k").create("a", (1000,), np.float32)


def test_a_fingerprint_changes_with_file_and_settings(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("1")
    first = cache.fingerprint([path], size=3)
    assert first == cache.fingerprint([path], size=3) != cache.fingerprint([path], size=4)
    path.write_text("12")
    assert cache.fingerprint([path], size=3) != first


# ── graphs ──


def test_every_way_to_build_a_graph_finds_the_same_neighbours() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 4))
    rows[10:20] = 0.0  # ties
    starts = np.arange(0, 40, 3)
    batched = knn.neighbours_batched(torch.from_numpy(rows), torch.from_numpy(starts), 20, 5).numpy()
    for at, found in zip(starts, batched, strict=True):
        window = rows[at : at + 20]
        assert (knn.neighbours_python(window, 5) == knn.neighbours_numpy(window, 5)).all()
        assert (np.sort(knn.neighbours_numpy(window, 5), 1) == np.sort(found, 1)).all()


def test_reversed_lists_name_those_who_have_a_node_as_their_neighbour() -> None:
    near = torch.tensor([[[1, 2], [0, 2], [0, 1]], [[1, 2], [2, 0], [1, 0]]], dtype=torch.int16)
    far, counts = knn.reversed_lists(near, chunk=1)
    for window, lists, sizes in zip(near, far, counts, strict=True):
        for node, members in enumerate(torch.split(lists, sizes.tolist())):
            assert members.tolist() == [i for i, own in enumerate(window) if node in own]


def test_the_graph_cache_rebuilds_when_data_or_parameters_change(tmp_path: Path) -> None:
    rows, starts = np.random.default_rng(0).normal(size=(40, 3)), np.arange(20)

    def opened(data: np.ndarray, k: int = 4, size: int = 10) -> bool:
        graphs = knn.GraphCache(tmp_path, data, starts, time_k=k, window_size=size)
        graphs.open()
        return graphs.built

    assert opened(rows)
    assert not opened(rows)
    assert opened(rows, k=5) and opened(rows, size=12)
    changed = rows.copy()
    changed[7, 1] += 1e-6
    assert opened(changed)
    assert cache.clear(tmp_path) > 0
    assert opened(rows)


def test_need_is_moved_by_training_data_only(tmp_path: Path) -> None:
    # GIVEN two runs whose data differ only in the validation part
    needs = []
    for extra in (0.0, 50.0):
        rows = np.random.default_rng(0).normal(size=(200, 3)).cumsum(0)
        rows[165:] += extra
        np.savez(tmp_path / "s.npz", data=rows, columns=np.array(["a", "b", "c"]))
        trainer = make("graph", tmp_path, synthetic=False, data_dir=str(tmp_path / "s.npz"), epochs=2)
        trainer.fit()
        needs.append(trainer.recipe.need)  # type: ignore[attr-defined]
    # THEN need is the same, and it did move
    assert torch.equal(needs[0], needs[1])
    assert not torch.equal(needs[0], torch.ones(3))


# ── P×K ──


class Samples:
    """Identities 0–5; 4 has no RGB, 5 has one sample only."""

    modalities = ("rgb", "nir")

    def __init__(self) -> None:
        generator = np.random.default_rng(3)
        self.rows = [
            (i % 5, (i % 5 != 4 and generator.random() < 0.6, generator.random() < 0.7)) for i in range(60)
        ]
        self.rows = [(who, has if any(has) else (who != 4, True)) for who, has in self.rows]
        self.rows.append((5, (True, True)))

    def __len__(self) -> int:
        return len(self.rows)

    def identity_of(self, index: int) -> int:
        return self.rows[index][0]

    def modalities_of(self, index: int) -> tuple[bool, ...]:
        return self.rows[index][1]


def make_sampler(**options: bool) -> CachedModalAwarePKSampler:
    return CachedModalAwarePKSampler(Samples(), 16, 4, seed=1, say=lambda text: None, **options)


def test_a_batch_is_p_identities_with_k_instances_and_rgb() -> None:
    sampler = make_sampler()
    assert sampler.pairable.tolist() == [0, 1, 2, 3]
    batches = list(sampler)
    assert len(batches) == len(sampler)
    for batch in batches:
        groups = [sampler.identities[batch[n : n + 4]] for n in range(0, 16, 4)]
        assert all(len(set(group)) == 1 for group in groups)
        assert len({group[0] for group in groups}) == 4
        assert all(sampler.rgb[batch[n : n + 4]].any() for n in range(0, 16, 4))


def test_complete_samples_come_first() -> None:
    sampler = make_sampler(prefer_complete=True)
    for batch in sampler:
        for at in range(0, 16, 4):
            members = sampler.members[int(sampler.identities[batch[at]])]
            complete = int(sampler.complete[members].sum())
            assert sampler.complete[batch[at : at + 4]].sum() == min(4, complete)


@pytest.mark.parametrize("ensure_rgb", [True, False])
@pytest.mark.parametrize("prefer_complete", [True, False])
@pytest.mark.parametrize("everyone", [True, False])
def test_naive_cached_and_vectorised_samplers_agree(
    ensure_rgb: bool, prefer_complete: bool, everyone: bool
) -> None:
    sampler = make_sampler(ensure_rgb=ensure_rgb, prefer_complete=prefer_complete)
    dataset = Samples()
    naive = NaivePKPlan(sampler, lambda i: (all(dataset.rows[i][1]), dataset.rows[i][1][0]), everyone)
    for epoch in (0, 1):
        want = [batch.tolist() for batch in PKPlan(sampler).iterate(epoch)]
        assert [batch.tolist() for batch in LookupPKPlan(sampler).iterate(epoch)] == want
        assert [batch.tolist() for batch in naive.iterate(epoch)] == want
        assert [batch.tolist() for batch in naive.iterate(epoch, 32)] == want[2:]
    assert naive.calls > 0


def test_the_documents_size_is_cached_and_its_figures_are_printed() -> None:
    class Large(Samples):
        def __init__(self) -> None:
            # 320 identities, every ninth without RGB, 14,910 samples
            self.rows = [(i % 320, (i % 320 % 9 != 8, True)) for i in range(14_910)]

    said: list[str] = []
    sampler = CachedModalAwarePKSampler(Large(), 32, 4, True, True, 42, rounds=1, say=said.append)
    assert f"({sampler.cache_seconds:.1f} s)" in said[1]
    assert "14910 samples" in said[0]
    assert "total IDs 320, pairable IDs 285 (89.1%), expected batches 35" in said[1]


def test_too_few_pairable_identities_are_a_sentence() -> None:
    with pytest.raises(TrainerError, match="a batch needs 8"):
        CachedModalAwarePKSampler(Samples(), 32, 4, say=lambda text: None)
    with pytest.raises(TrainerError, match="not a multiple"):
        CachedModalAwarePKSampler(Samples(), 30, 4, say=lambda text: None)


def test_missing_and_broken_images_are_masked_not_fatal(tmp_path: Path) -> None:
    make("reid", tmp_path, rung="naive")
    folder = next((tmp_path / "reid").glob("generated-*"))
    broken = sorted((folder / "nir").glob("*/*.jpg"))[3]
    broken.write_bytes(b"not an image")
    losses = {}
    for rung in ("document", "best"):
        trainer = make("reid", tmp_path, rung=rung)
        batch = next(iter(trainer.data.train.epoch(0)))
        assert (batch["images"][~batch["present"]] == 0).all()
        losses[rung] = trainer.train_steps(3).losses
    assert losses["best"] == pytest.approx(losses["document"], rel=1e-3)


def test_images_that_do_not_fit_are_read_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = make("reid", tmp_path).train_steps(3).losses
    monkeypatch.setattr(cache, "available_memory", lambda: 1000)
    assert make("reid", tmp_path).train_steps(3).losses == held
