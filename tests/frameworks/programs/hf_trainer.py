"""Hugging Face Trainer: a small language model, evaluated and saved on the way."""

from __future__ import annotations

import tempfile
from typing import Any

from tests.frameworks.programs import STEPS
from tests.frameworks.reference import REST, Reference


def train(reference: Reference, with_callback: bool) -> None:
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    class Timed(Trainer):  # type: ignore[misc]
        def get_batch_samples(self, *args: Any, **kwargs: Any) -> Any:
            reference.mark("data")
            try:
                return super().get_batch_samples(*args, **kwargs)
            finally:
                reference.mark(REST)

        def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
            reference.mark("forward")
            return super().compute_loss(*args, **kwargs)

    reference.during(Timed, "evaluate", "validate", whole=True)
    reference.during(Timed, "_save_checkpoint", "checkpoint", whole=True)
    reference.during(torch.Tensor, "backward", "backward", then=REST)
    reference.during(torch.optim.AdamW, "step", "optimizer", then=REST)
    rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 100, (STEPS * 8, 32))]
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), num_train_epochs=1, per_device_train_batch_size=4, report_to=[],
        gradient_accumulation_steps=2, eval_strategy="steps", eval_steps=20, save_steps=30, logging_steps=10,
        use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    callbacks: list[Any] = []
    if with_callback:
        from sdk.callbacks.hf import GpumonCallback

        callbacks = [GpumonCallback("hf")]
    network = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=100, n_positions=32, n_embd=64, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
        )
    )
    Timed(network, arguments, train_dataset=rows, eval_dataset=rows[:64], callbacks=callbacks).train()
