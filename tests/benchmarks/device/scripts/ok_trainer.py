"""The Hugging Face Trainer with sensible settings."""

import tempfile

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments, set_seed

set_seed(5)


class Pairs(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 36)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "labels": self.x[i].sum().sign().clamp(min=0).long()}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(36, 150), nn.GELU(), nn.Linear(150, 150), nn.GELU(), nn.Linear(150, 2)
        )

    def forward(self, x, labels):
        logits = self.net(x)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


with tempfile.TemporaryDirectory() as folder:
    settings = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=16,
        max_steps=130,
        logging_steps=100,
        save_strategy="no",
        report_to=[],
        bf16=True,
        disable_tqdm=True,
        dataloader_num_workers=1,
        optim="adamw_torch_fused",
    )
    result = Trainer(model=Model(), args=settings, train_dataset=Pairs(16 * 200)).train()
    print(result.training_loss)
