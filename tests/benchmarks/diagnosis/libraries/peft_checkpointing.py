"""LoRA of a small language model with PEFT and the Trainer, activations recomputed."""

import sys
import tempfile

from tests.frameworks.torchvision_operators import declare

declare()

import torch
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

base = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=300, n_positions=64, n_embd=192, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=0
    )
)
model = get_peft_model(base, LoraConfig(r=8, target_modules=["c_attn"], fan_in_fan_out=True))
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 300, (800, 64))]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=100,
    per_device_train_batch_size=8,
    gradient_checkpointing="--fixed" not in sys.argv,
    gradient_checkpointing_kwargs={"use_reentrant": False},
    save_strategy="no",
    logging_steps=50,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
Trainer(model, arguments, train_dataset=rows).train()
