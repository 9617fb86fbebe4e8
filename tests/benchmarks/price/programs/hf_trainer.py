"""A small language model with the Hugging Face Trainer: logging, evaluation, saved checkpoints."""

import argparse
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(Dataset):
    def __init__(self, count: int, length: int) -> None:
        self.rows = torch.randint(0, 512, (count, length), generator=torch.Generator().manual_seed(count))

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    config = GPT2Config(vocab_size=512, n_positions=64, n_embd=128, n_layer=3, n_head=4)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=GPT2LMHeadModel(config),
            args=TrainingArguments(
                output_dir=folder,
                max_steps=args.steps,
                per_device_train_batch_size=8,
                logging_steps=20,
                eval_strategy="steps",
                eval_steps=max(50, args.steps // 4),
                save_steps=max(50, args.steps // 2),
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=Tokens(4000, 64),
            eval_dataset=Tokens(64, 64),
        )
        trainer.train()


if __name__ == "__main__":
    main()
