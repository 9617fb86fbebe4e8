"""Masked words of recipes: a small BERT with tied embeddings, pre-trained from scratch."""

import argparse
import logging
import math
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

logger = logging.getLogger("pantry")
PAD, MASK, FIRST_WORD = 0, 1, 2
IGNORE = -100


@dataclass
class BertConfig:
    vocab_size: int = 3000
    hidden_size: int = 128
    num_hidden_layers: int = 2
    num_attention_heads: int = 4
    intermediate_size: int = 512
    max_position_embeddings: int = 48
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    gather_masked: bool = False


def make_recipes(config, count, generator):
    """A word is mostly followed by one of a few others: dishes have a grammar of their own."""
    follow = torch.randint(FIRST_WORD, config.vocab_size, (config.vocab_size, 4), generator=generator)
    words = torch.randint(FIRST_WORD, config.vocab_size, (count,), generator=generator)
    rows = [words]
    for _ in range(config.max_position_embeddings - 1):
        choice = torch.randint(4, (count, 1), generator=generator)
        following = follow[rows[-1]].gather(1, choice).squeeze(1)
        stray = torch.randint(FIRST_WORD, config.vocab_size, (count,), generator=generator)
        rows.append(torch.where(torch.rand(count, generator=generator) < 0.1, stray, following))
    return torch.stack(rows, 1)


class MaskingCollator:
    """Eight of ten chosen words are hidden, one is replaced, one stays."""

    def __init__(self, config, probability=0.15):
        self.config, self.probability = config, probability

    def __call__(self, rows):
        chosen = torch.rand(rows.shape) < self.probability
        labels = torch.where(chosen, rows, IGNORE)
        dice = torch.rand(rows.shape)
        noise = torch.randint(FIRST_WORD, self.config.vocab_size, rows.shape)
        rows = torch.where(chosen & (dice < 0.8), MASK, rows)
        return torch.where(chosen & (dice > 0.9), noise, rows), labels


class BertEmbeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=PAD)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(self, input_ids):
        positions = self.position_embeddings.weight[: input_ids.shape[1]]
        return self.norm(self.word_embeddings(input_ids) + positions)


class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.num_attention_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.attention_out = nn.Linear(config.hidden_size, config.hidden_size)
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = self.attention_norm(x + self.attention_out(seen))
        return self.norm(x + self.down(F.gelu(self.up(x))))


class PredictionHead(nn.Module):
    def __init__(self, config, table):
        super().__init__()
        self.transform = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.decoder.weight = table

    def forward(self, x):
        return self.decoder(self.norm(F.gelu(self.transform(x))))


class BertForMaskedLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.layers = nn.Sequential(*[BertLayer(config) for _ in range(config.num_hidden_layers)])
        self.cls = PredictionHead(config, self.embeddings.word_embeddings.weight)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, 0.0, self.config.initializer_range)

    def forward(self, input_ids, labels):
        sequence = self.layers(self.embeddings(input_ids))
        if self.config.gather_masked:
            asked = labels != IGNORE
            sequence, labels = sequence[asked], labels[asked]
        scores = self.cls(sequence)
        return F.cross_entropy(scores.view(-1, self.config.vocab_size), labels.view(-1), ignore_index=IGNORE)


def linear_with_warm_up(optimizer, warm_up, total):
    def factor(step):
        return min((step + 1) / warm_up, max(0.0, (total - step) / (total - warm_up)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)


def parameter_groups(model, weight_decay):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def train(args):
    torch.manual_seed(args.seed)
    config = BertConfig(gather_masked=args.fixed)
    recipes = make_recipes(config, 4000, torch.Generator().manual_seed(args.seed))
    collator = MaskingCollator(config)
    model = BertForMaskedLM(config)
    optimizer = torch.optim.AdamW(parameter_groups(model, 0.01), lr=args.learning_rate, fused=True)
    scheduler = linear_with_warm_up(optimizer, args.max_steps // 10, args.max_steps)
    order, running, since = iter(()), torch.zeros(()), time.perf_counter()
    for step in range(1, args.max_steps + 1):
        rows = next(order, None)
        if rows is None:
            order = iter(torch.randperm(len(recipes)).split(args.train_batch_size))
            rows = next(order)
        loss = model(*collator(recipes[rows]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        running += loss.detach()
        if step % args.logging_steps == 0:
            mean, took = running.item() / args.logging_steps, time.perf_counter() - since
            logger.info("step %d perplexity %.1f (%.1f s)", step, math.exp(mean), took)
            running.zero_()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(name)s | %(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_batch_size", type=int, default=16)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--max_steps", type=int, default=180)
    parser.add_argument("--logging_steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--fixed", action="store_true", help="scores only where a word is hidden")
    train(parser.parse_args())
