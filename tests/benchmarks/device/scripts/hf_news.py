"""News topics with the Hugging Face Trainer; the collator asks a slow feature service."""

import sys
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed

set_seed(1)


class News(Dataset):
    def __len__(self):
        return 16 * 180

    def __getitem__(self, i):
        time.sleep(0.0016)
        return {"ids": [(i * 7 + k) % 300 for k in range(24)], "labels": i % 4}


class Topics(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(300, 96)
        self.body = nn.Sequential(
            nn.Linear(96, 192), nn.ReLU(), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 4)
        )

    def forward(self, ids, labels):
        logits = self.body(self.embed(ids))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def collate(rows):
    return {name: torch.tensor([row[name] for row in rows]) for name in ("ids", "labels")}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=16,
        num_train_epochs=1,
        logging_steps=60,
        save_strategy="no",
        report_to=[],
        bf16=True,
        disable_tqdm=True,
        dataloader_num_workers=3 if "--fixed" in sys.argv else 0,
    )
    trainer = Trainer(model=Topics(), args=arguments, train_dataset=News(), data_collator=collate)
    print(trainer.train().training_loss)
