"""Token classification with the Hugging Face Trainer; it saves every 5 steps."""

from tests.frameworks.torchvision_operators import declare

declare()

import sys
import tempfile

import torch
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments

config = BertConfig(
    vocab_size=4000, hidden_size=192, num_hidden_layers=2, num_attention_heads=4, intermediate_size=384,
    num_labels=5,
)  # fmt: skip
rows = [
    {"input_ids": ids, "labels": torch.randint(0, 5, (48,))} for ids in torch.randint(0, 4000, (1200, 48))
]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=150,
    per_device_train_batch_size=8,
    save_strategy="steps",
    save_steps=150 if "--fixed" in sys.argv else 5,
    save_total_limit=2,
    logging_steps=50,
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = Trainer(model=BertForTokenClassification(config), args=arguments, train_dataset=rows)
trainer.train()
