"""The SDK against the real frameworks: ``python -m tests.frameworks [lightning] [hf] [accelerate]``.

Not part of `make test` (the frameworks are large); docs/sdk.md names the versions it was run with. Each
check trains a small model, with the callback or the auto way, and reads the ring.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.rings import RingFile, trainer_rings

STEPS = 24


def data() -> Any:
    import torch
    from torch.utils.data import TensorDataset

    return TensorDataset(torch.randn(STEPS * 4, 8), torch.randint(0, 2, (STEPS * 4,)))


def run_lightning() -> None:
    import lightning as L
    import torch
    from torch import nn
    from torch.utils.data import DataLoader

    from sdk.callbacks.lightning import GpumonCallback

    class Task(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(8, 2)

        def training_step(self, batch: Any, index: int) -> Any:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any, index: int) -> Any:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    callbacks = [] if os.environ.get("GPUMON_AUTO") else [GpumonCallback("light")]
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", callbacks=callbacks, enable_model_summary=False, **quiet
    )
    trainer.fit(Task(), DataLoader(data(), batch_size=4), DataLoader(data(), batch_size=8))


def run_hf() -> None:
    import torch
    from torch import nn
    from transformers import Trainer, TrainingArguments

    from sdk.callbacks.hf import GpumonCallback

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(8, 2)

        def forward(self, x: Any, labels: Any = None) -> Any:
            out = self.net(x)
            return {"loss": nn.functional.cross_entropy(out, labels), "logits": out}

    rows = [{"x": torch.randn(8), "labels": torch.tensor(n % 2)} for n in range(STEPS * 4)]
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=4, report_to=[],
        eval_strategy="epoch", save_strategy="epoch", logging_steps=5, use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    callbacks = [] if os.environ.get("GPUMON_AUTO") else [GpumonCallback("hugging")]
    Trainer(model=Model(), args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=callbacks).train()


def run_accelerate() -> None:
    import torch
    from accelerate import Accelerator
    from torch import nn
    from torch.utils.data import DataLoader

    from sdk import TrainingMonitor

    accelerator = Accelerator(cpu=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data(), batch_size=4))

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        return loss

    if os.environ.get("GPUMON_AUTO"):
        for _ in range(2):
            for x, y in loader:
                step(x, y)
        return
    with TrainingMonitor("accel") as m:
        for _ in range(2):
            for x, y in m.loader(loader):
                m.step(step(x, y))


def check(found: RingFile, way: str, phases: set[str]) -> None:
    assert found.header.head == 2 * STEPS, found.header.head
    assert found.meta["way"] == way, found.meta["way"]
    seen = {name for one in found.records for name in one.phases}
    assert phases <= seen, f"only {seen}"
    assert found.config["model"]["parameters"] == 18


CHECKS: dict[str, tuple[str, Callable[[], None], str, set[str]]] = {
    "lightning": (
        "lightning",
        run_lightning,
        "lightning",
        {"data", "forward", "backward", "optimizer", "validate"},
    ),
    "hf": (
        "transformers",
        run_hf,
        "hf",
        {"data", "forward", "backward", "optimizer", "validate", "checkpoint"},
    ),
    "accelerate": ("accelerate", run_accelerate, "api", {"data"}),
}


def main(chosen: list[str]) -> int:
    for name in chosen or list(CHECKS):
        package, _, way, phases = CHECKS[name]
        if importlib.util.find_spec(package) is None:
            print(f"{name}: {package} is not installed")
            return 1
        auto = {"data", "forward", "backward", "optimizer"} | ({"validate"} & phases)
        for how, expected, parts in (("callback", way, phases), ("auto", "auto", auto)):
            check(run(name, how), expected, parts)
            print(f"{name}: {how} ok ({package} {version(package)})", flush=True)
    return 0


def version(package: str) -> str:
    from importlib.metadata import version as installed

    return installed(package)


def run(name: str, how: str) -> RingFile:
    """One check in a process of its own; gives its ring."""
    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "GPUMON_DIR": folder, "PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
        if how == "auto":
            env |= {"PYTHONPATH": f"{root / 'sdk' / 'autostart'}{os.pathsep}{root}", "GPUMON_AUTO": "1"}
        command = [sys.executable, "-m", "tests.frameworks", "--inside", name]
        subprocess.run(command, env=env, check=True, timeout=300, cwd=root, stdout=subprocess.DEVNULL)
        (found,) = trainer_rings(Path(folder))
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        CHECKS[sys.argv[2]][1]()
    else:
        sys.exit(main(sys.argv[1:]))
