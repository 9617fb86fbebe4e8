"""Which team gets a ticket: a stream of gzipped JSON lines, tokens by hand, a small attention network."""

import argparse
import gzip
import html
import itertools
import json
import os
import random
import re
import tempfile
import unicodedata
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

CONFIG = {
    "stream": {"shards": 6, "tickets": 900, "shuffle": 800, "in_place": False, "words": 192},
    "loader": {"batch_size": 32, "num_workers": 0, "drop_last": True},
    "model": {"buckets": 4096, "width": 64, "heads": 4, "teams": 7},
    "train": {"lr": 1e-3, "epochs": 4, "report": 80},
}
CLEANING = [
    (re.compile(r"https?://\S+"), " link "),
    (re.compile(r"<[^>]+>"), " "),
    (re.compile(r"\b\d{4,}\b"), " number "),
    (re.compile(r"([!?])\1+"), r"\1"),
]
TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d+|[!?]")


def write_shards(folder, shards, tickets):
    rng = random.Random(12)
    words = ["".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(2, 9))) for _ in range(1500)]
    for shard in range(shards):
        with gzip.open(os.path.join(folder, f"tickets-{shard:02}.jsonl.gz"), "wt") as out:
            for _ in range(tickets):
                team = rng.randrange(7)
                topic = rng.choices(words[team * 200 : team * 200 + 300], k=80) + rng.choices(words, k=160)
                rng.shuffle(topic)
                subject, body = (
                    " ".join(topic[:6]).title(),
                    " ".join(topic[6:]) + rng.choice(["!", "?", " 404"]),
                )
                meta = {"tags": rng.choices(words, k=5), "opened": rng.randrange(10**9), "agent": None}
                out.write(json.dumps({"subject": subject, "body": body, "team": team, "meta": meta}) + "\n")


class TicketStream(IterableDataset):
    def __init__(self, folder, buckets, words, shuffle, in_place):
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder))
        self.buckets, self.words = buckets, words
        self.shuffle, self.in_place = shuffle, in_place

    def encode(self, ticket):
        text = unicodedata.normalize("NFKD", html.unescape(f"{ticket['subject']} . {ticket['body']}")).lower()
        for pattern, instead in CLEANING:
            text = pattern.sub(instead, text)
        tokens = TOKEN.findall(text)[: self.words]
        ids = [1 + zlib.crc32(token.encode()) % (self.buckets - 1) for token in tokens]
        ids += [0] * (self.words - len(ids))
        return torch.tensor(ids), ticket["team"]

    def lines(self):
        mine = get_worker_info()
        for path in itertools.islice(
            self.paths, mine.id if mine else 0, None, mine.num_workers if mine else 1
        ):
            with gzip.open(path, "rt") as lines:
                yield from lines

    def __iter__(self):
        samples = (self.encode(json.loads(line)) for line in self.lines())
        yield from (mixed_in_place if self.in_place else mixed)(samples, self.shuffle)


def mixed(samples, size):
    """In another order, as far as a buffer of `size` goes."""
    buffer = []
    for sample in samples:
        buffer.append(sample)
        if len(buffer) >= size:
            random.shuffle(buffer)
            yield buffer.pop()
    random.shuffle(buffer)
    yield from buffer


def mixed_in_place(samples, size):
    """The same; a new sample takes the place of the one that leaves."""
    buffer = list(itertools.islice(samples, size))
    for sample in samples:
        place = random.randrange(size)
        buffer[place], sample = sample, buffer[place]
        yield sample
    random.shuffle(buffer)
    yield from buffer


class StreamLoader(DataLoader):
    """Batches without an end: the stream is begun anew when it runs dry."""

    def forever(self):
        while True:
            yield from self


class Router(nn.Module):
    def __init__(self, buckets, width, heads, teams):
        super().__init__()
        self.embedding = nn.Embedding(buckets, width, padding_idx=0)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.query = nn.Parameter(torch.randn(1, 4, width) * 0.1)
        self.head = nn.Sequential(nn.Linear(4 * width, 128), nn.GELU(), nn.Linear(128, teams))

    def forward(self, ids):
        x = self.embedding(ids)
        seen, _ = self.attention(
            self.query.expand(len(ids), -1, -1), x, x, key_padding_mask=ids == 0, need_weights=False
        )
        return self.head(self.norm(seen).flatten(1))


def fit(config, folder):
    stream, train = config["stream"], config["train"]
    data = TicketStream(
        folder, config["model"]["buckets"], stream["words"], stream["shuffle"], stream["in_place"]
    )
    loader = StreamLoader(data, **config["loader"])
    model = Router(**config["model"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=train["lr"], fused=True)
    steps = train["epochs"] * stream["shards"] * stream["tickets"] // config["loader"]["batch_size"]
    running = 0.0
    for step, (ids, team) in enumerate(itertools.islice(loader.forever(), steps), 1):
        loss = nn.functional.cross_entropy(model(ids), team)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running = 0.98 * running + 0.02 * loss.item()
        if step % train["report"] == 0:
            print(f"step {step}/{steps}: loss {running:.3f}")


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--fixed", action="store_true", help="the buffer is not shuffled for every ticket")
    if cli.parse_args().fixed:
        CONFIG["stream"]["in_place"] = True
    torch.manual_seed(12)
    random.seed(12)
    with tempfile.TemporaryDirectory() as folder:
        write_shards(folder, CONFIG["stream"]["shards"], CONFIG["stream"]["tickets"])
        fit(CONFIG, folder)
