"""Which cuisine is a recipe from: sub-word pieces, a small transformer, settings in one nested dict."""

import re
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

CFG = {
    "data": {"recipes": 1600, "max_len": 48, "pre_tokenize": "--fixed" in sys.argv},
    "model": {"dim": 64, "heads": 4, "layers": 1, "cuisines": 12},
    "optim": {"name": "adamw", "lr": 1e-3, "batch_size": 32, "epochs": 9},
    "seed": 31,
}
OPTIMIZERS = {
    "adamw": lambda params, lr: torch.optim.AdamW(params, lr=lr, fused=True),
    "sgd": lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9),
}
SYLLABLES = [
    "pa",
    "sta",
    "cur",
    "ry",
    "tom",
    "ato",
    "on",
    "ion",
    "gar",
    "lic",
    "sal",
    "mon",
    "ri",
    "ce",
    "so",
    "up",
]


def write_recipes(n, generator):
    texts, labels = [], []
    for _ in range(n):
        cuisine = int(torch.randint(CFG["model"]["cuisines"], (1,), generator=generator))
        picks = torch.randint(len(SYLLABLES), (40,), generator=generator).tolist()
        words = [SYLLABLES[(a + cuisine) % 16] + SYLLABLES[b] for a, b in zip(picks[::2], picks[1::2])]
        texts.append(", ".join(words).title() + "; 2 cups.")
        labels.append(cuisine)
    return texts, labels


class PieceTokenizer:
    """Greedy longest match, as WordPiece does it."""

    def __init__(self):
        pieces = SYLLABLES + [a + b for a in SYLLABLES[:8] for b in SYLLABLES[8:]]
        letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("0123456789,;.")
        self.vocab = {piece: i + 2 for i, piece in enumerate(dict.fromkeys(pieces + letters))}
        self.longest = max(map(len, self.vocab))

    def __call__(self, text):
        ids = []
        for word in re.findall(r"\w+|[^\w\s]", text.lower()):
            start = 0
            while start < len(word):
                for end in range(min(len(word), start + self.longest), start, -1):
                    if word[start:end] in self.vocab:
                        ids.append(self.vocab[word[start:end]])
                        start = end
                        break
                else:
                    ids.append(1)
                    start += 1
        return ids[: CFG["data"]["max_len"]]


class Recipes(Dataset):
    def __init__(self, texts, labels, tokenizer, pre_tokenize):
        self.items = [tokenizer(t) for t in texts] if pre_tokenize else texts
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.items[i], self.labels[i]


class PadBatch:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows):
        encoded = [torch.tensor(self.tokenizer(x) if isinstance(x, str) else x) for x, _ in rows]
        ids = nn.utils.rnn.pad_sequence(encoded, batch_first=True)
        return {"ids": ids, "mask": ids.eq(0), "labels": torch.tensor([y for _, y in rows])}


class CuisineModel(nn.Module):
    def __init__(self, vocab, dim, heads, layers, cuisines):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.classify = nn.Linear(dim, cuisines)

    def forward(self, ids, mask):
        hidden = self.encoder(self.embed(ids), src_key_padding_mask=mask)
        keep = (~mask).unsqueeze(-1).float()
        return self.classify((hidden * keep).sum(1) / keep.sum(1))


def run(cfg):
    generator = torch.Generator().manual_seed(cfg["seed"])
    torch.manual_seed(cfg["seed"])
    tokenizer = PieceTokenizer()
    texts, labels = write_recipes(cfg["data"]["recipes"], generator)
    data = Recipes(texts, labels, tokenizer, cfg["data"]["pre_tokenize"])
    loader = DataLoader(data, cfg["optim"]["batch_size"], shuffle=True, collate_fn=PadBatch(tokenizer))
    model = CuisineModel(len(tokenizer.vocab) + 2, **cfg["model"])
    optimizer = OPTIMIZERS[cfg["optim"]["name"]](model.parameters(), cfg["optim"]["lr"])
    for epoch in range(cfg["optim"]["epochs"]):
        total = torch.zeros(())
        for batch in loader:
            loss = F.cross_entropy(model(batch["ids"], batch["mask"]), batch["labels"])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    run(CFG)
