"""The trainers' GPU paths, executed on the stand-in device: products, and tom500's pinned ring."""

from __future__ import annotations

from pathlib import Path

from tests import device


def run(code: str, folder: Path) -> list[str]:
    """The lines a few statements print in a process with the device; inductor has no Triton there."""
    front = f"""
        import os
        os.environ["XDG_CACHE_HOME"] = {str(folder)!r}
        import torch
        from tests.unit.trainers.helpers import make as made
        def make(name, **options):
            given = dict(device="cuda", use_torch_compile=False)
            return made(name, Path({str(folder)!r}), **given | options)
    """
    result = device.run_code("        from pathlib import Path" + front + code)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout.splitlines()


def test_products_are_measured_on_a_gpu_too(tmp_path: Path) -> None:
    code = """
        trainer = make("tom500", products="auto", quiet=False)
        trainer.train_steps(2)
        print(trainer.recipe.on("resident"))
    """
    assert run(code, tmp_path)[-1] == "True"


def test_mixed_precision_leaves_every_weight_finite(tmp_path: Path) -> None:
    code = """
        trainer = make("tcn", products="none", use_amp=True, amp_dtype="float16")
        trainer.train_steps(3)
        print(all(bool(torch.isfinite(one.detach().cpu()).all()) for one in trainer.model.parameters()))
    """
    assert run(code, tmp_path)[-1] == "True"


def test_the_pinned_ring_gives_the_slices_of_the_plain_gather(tmp_path: Path) -> None:
    code = """
        from trainers.datasets.ring import RingSource
        ring, plain = make("tom500", products="none"), make("tom500", products="none", device="cpu")
        assert isinstance(ring.data.train, RingSource)
        for epoch in (0, 1):
            both = (one.data.train.epoch(epoch, 4) for one in (ring, plain))
            for copied, gathered in zip(*both, strict=True):
                assert copied["image"].is_cuda and len(gathered["image"])
                assert all(torch.equal(copied[key].cpu(), gathered[key]) for key in gathered)
                print("same")
    """
    assert run(code, tmp_path).count("same") > 4


def test_the_pinned_ring_never_makes_the_host_wait(tmp_path: Path) -> None:
    code = """
        trainer = make("tom500", products="none", log_every=1000, norm_every=1000)
        trainer.train_steps(2)
        torch.cuda.set_sync_debug_mode("error")
        for batch in trainer.data.train.epoch(3):
            trainer.recipe.loss(trainer.model, batch)
        print("no wait")
    """
    assert run(code, tmp_path) == ["no wait"]
