"""A small language model with the Hugging Face Trainer; it evaluates every 4 steps."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

fixed = "--fixed" in sys.argv
config = GPT2Config(
    vocab_size=500, n_positions=64, n_embd=160, n_layer=4, n_head=4, bos_token_id=0, eos_token_id=0
)
texts = [{"input_ids": row, "labels": row} for row in torch.randint(0, 500, (960, 64))]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=120,
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    eval_strategy="steps",
    eval_steps=60 if fixed else 4,
    save_strategy="no",
    logging_steps=40,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
Trainer(GPT2LMHeadModel(config), arguments, train_dataset=texts, eval_dataset=texts[:32]).train()
