"""Supervised fine-tuning with TRL; a checkpoint every 4 steps."""

import random
import sys
import tempfile

from tests.frameworks.torchvision_operators import declare

declare()

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = [f"w{number}" for number in range(300)]
vocabulary = {"<pad>": 0, "<eos>": 1, "<unk>": 2} | {word: at + 3 for at, word in enumerate(words)}
plain = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
)
choose = random.Random(0)
texts = Dataset.from_list([{"text": " ".join(choose.choices(words, k=60))} for _ in range(800)])
model = GPT2LMHeadModel(
    GPT2Config(
        vocab_size=len(vocabulary), n_positions=64, n_embd=192, n_layer=3, n_head=4, bos_token_id=1,
        eos_token_id=1,
    )
)  # fmt: skip
arguments = SFTConfig(
    output_dir=tempfile.mkdtemp(),
    max_steps=100,
    per_device_train_batch_size=8,
    max_length=64,
    save_steps=100 if "--fixed" in sys.argv else 4,
    save_total_limit=2,
    logging_steps=50,
    gradient_checkpointing=False,
    report_to=[],
    use_cpu=True,
    bf16=False,
    disable_tqdm=True,
)
SFTTrainer(model=model, args=arguments, train_dataset=texts, processing_class=tokenizer).train()
