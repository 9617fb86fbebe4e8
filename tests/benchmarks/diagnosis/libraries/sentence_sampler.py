"""Embeddings of sentences with Sentence Transformers: batches without duplicates, of pairs that have many."""

from tests.frameworks.torchvision_operators import declare

declare()

import random
import sys
import tempfile

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments, losses,
)  # fmt: skip
from sentence_transformers.models import Pooling, Transformer
from sentence_transformers.training_args import BatchSamplers
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

words = [f"w{number}" for number in range(500)]
vocabulary = {"[PAD]": 0, "[UNK]": 1} | {word: at + 2 for at, word in enumerate(words)}
plain = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
plain.pre_tokenizer = pre_tokenizers.Whitespace()
folder = tempfile.mkdtemp()
PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]").save_pretrained(folder)
config = BertConfig(
    vocab_size=len(vocabulary), hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
    intermediate_size=256, max_position_embeddings=64,
)  # fmt: skip
BertModel(config).save_pretrained(folder)
encoder = Transformer(folder, max_seq_length=32)
model = SentenceTransformer(modules=[encoder, Pooling(128)], device="cpu")
choose = random.Random(0)
questions = [" ".join(choose.choices(words, k=12)) for _ in range(80)]
pairs = Dataset.from_list(
    [
        {"anchor": choose.choice(questions), "positive": " ".join(choose.choices(words, k=16))}
        for _ in range(12800)
    ]
)
arguments = SentenceTransformerTrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=150,
    per_device_train_batch_size=64,
    batch_sampler=BatchSamplers.BATCH_SAMPLER if "--fixed" in sys.argv else BatchSamplers.NO_DUPLICATES,
    logging_steps=50,
    save_strategy="no",
    report_to=[],
    use_cpu=True,
    disable_tqdm=True,
)
trainer = SentenceTransformerTrainer(
    model=model, args=arguments, train_dataset=pairs, loss=losses.MultipleNegativesRankingLoss(model)
)
trainer.train()
