"""Places, plants and dates in naturalists' notes: a BiLSTM over words and letters with a conditional random field."""

import argparse
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

TAGS = ["O"] + [f"{prefix}-{kind}" for kind in ("PLACE", "PLANT", "DATE", "FINDER") for prefix in "BI"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def make_notes(count, rng):
    """Words of made-up letters; every kind of entity prefers words of its own."""
    words = sorted({"".join(rng.choices(LETTERS, k=rng.randint(3, 9))) for _ in range(1500)})
    share = len(words) // 8
    lexicon = {kind: words[i * share : (i + 1) * share] for i, kind in enumerate(("PLACE", "PLANT", "DATE"))}
    lexicon["FINDER"] = words[3 * share : 4 * share]
    plain = words[3 * share :]
    notes = []
    for _ in range(count):
        text, tags = [], []
        wanted = rng.randint(14, 34)
        while len(text) < wanted:
            if rng.random() < 0.25:
                kind = rng.choice(list(lexicon))
                length = rng.randint(1, 3)
                text += rng.choices(lexicon[kind], k=length)
                tags += [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
            else:
                text.append(rng.choice(plain))
                tags.append("O")
        notes.append((text, tags))
    return words, notes


class Corpus:
    """Everything as numbers, once; batches of notes of like length."""

    def __init__(self, words, notes, batch_size):
        word_number = {word: n for n, word in enumerate(words, 1)}
        tag_number = {tag: n for n, tag in enumerate(TAGS)}
        spelled = [torch.tensor([LETTERS.index(c) + 1 for c in word]) for word in words]
        self.spelling = F.pad(pad_sequence(spelled, batch_first=True), (1, 1, 1, 0))
        notes = sorted(notes, key=lambda note: len(note[0]))
        self.batches = []
        for start in range(0, len(notes), batch_size):
            texts, tags = zip(*notes[start : start + batch_size])
            self.batches.append(
                (
                    pad_sequence(
                        [torch.tensor([word_number[w] for w in t]) for t in texts], batch_first=True
                    ),
                    pad_sequence(
                        [torch.tensor([tag_number[t] for t in some]) for some in tags], batch_first=True
                    ),
                    torch.tensor([len(text) for text in texts]),
                )
            )


class CRF(nn.Module):
    """Linear-chain: scores of transitions, the log of the partition function, the best path."""

    def __init__(self, tags):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(tags))
        self.transitions = nn.Parameter(torch.randn(tags, tags) * 0.1)

    def forward(self, emissions, tags, lengths):
        return (self.partition(emissions, lengths) - self.score(emissions, tags, lengths)).mean()

    def score(self, emissions, tags, lengths):
        mask = torch.arange(tags.shape[1])[None] < lengths[:, None]
        unary = emissions.gather(2, tags[..., None]).squeeze(2)
        pairs = self.transitions[tags[:, :-1], tags[:, 1:]]
        return self.start[tags[:, 0]] + (unary * mask).sum(1) + (pairs * mask[:, 1:]).sum(1)

    def partition(self, emissions, lengths):
        found = []
        for note, length in zip(emissions, lengths.tolist()):
            alpha = self.start + note[0]
            for t in range(1, length):
                alpha = torch.logsumexp(alpha[:, None] + self.transitions, 0) + note[t]
            found.append(torch.logsumexp(alpha, 0))
        return torch.stack(found)

    @torch.no_grad()
    def decode(self, emissions, lengths):
        alpha, back = self.start + emissions[:, 0], []
        for t in range(1, emissions.shape[1]):
            best, origin = (alpha[:, :, None] + self.transitions).max(1)
            inside = (t < lengths)[:, None]
            alpha = torch.where(inside, best + emissions[:, t], alpha)
            back.append(torch.where(inside, origin, torch.arange(len(TAGS))))
        path = [alpha.argmax(1)]
        for origin in reversed(back):
            path.append(origin.gather(1, path[-1][:, None]).squeeze(1))
        return torch.stack(path[::-1], 1)


class BatchedCRF(CRF):
    def partition(self, emissions, lengths):
        alpha, steps = self.start + emissions[:, 0], emissions.unbind(1)
        for t in range(1, len(steps)):
            following = torch.logsumexp(alpha[:, :, None] + self.transitions, 1) + steps[t]
            alpha = torch.where((t < lengths)[:, None], following, alpha)
        return torch.logsumexp(alpha, 1)


class Tagger(nn.Module):
    def __init__(self, words, spelling, crf, width=96, hidden=128):
        super().__init__()
        self.register_buffer("spelling", spelling)
        self.words = nn.Embedding(words + 1, width, padding_idx=0)
        self.letters = nn.Embedding(len(LETTERS) + 1, 16, padding_idx=0)
        self.letter_conv = nn.Conv1d(16, 32, 3)
        self.drop = nn.Dropout(0.3)
        self.lstm = nn.LSTM(width + 32, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))
        self.crf = crf

    def emissions(self, text, lengths):
        letters = self.letters(self.spelling[text.flatten()]).transpose(1, 2)
        spelled = self.letter_conv(letters).amax(2).view(*text.shape, -1)
        x = self.drop(torch.cat([self.words(text), spelled], 2))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        x, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(self.drop(x))

    def loss(self, text, tags, lengths):
        return self.crf(self.emissions(text, lengths), tags, lengths)


@torch.no_grad()
def token_accuracy(model, corpus):
    model.eval()
    right = count = 0
    for text, tags, lengths in corpus.batches:
        guess = model.crf.decode(model.emissions(text, lengths), lengths)
        right += ((guess == tags) & (text > 0)).sum().item()
        count += lengths.sum().item()
    return right / count


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--notes", type=int, default=900)
    cli.add_argument("--batch-size", type=int, default=16)
    cli.add_argument("--epochs", type=int, default=6)
    cli.add_argument("--lr", type=float, default=3e-3)
    cli.add_argument("--seed", type=int, default=19)
    cli.add_argument("--fixed", action="store_true", help="the forward recursion for all notes of a batch")
    args = cli.parse_args()
    rng = random.Random(args.seed)
    torch.manual_seed(args.seed)
    words, notes = make_notes(args.notes + 100, rng)
    train, dev = (Corpus(words, some, args.batch_size) for some in (notes[100:], notes[:100]))
    crf = BatchedCRF(len(TAGS)) if args.fixed else CRF(len(TAGS))
    model = Tagger(len(words), train.spelling, crf)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
    for epoch in range(1, args.epochs + 1):
        model.train()
        total = 0.0
        for text, tags, lengths in rng.sample(train.batches, len(train.batches)):
            optimizer.zero_grad()
            loss = model.loss(text, tags, lengths)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train.batches):.3f}, dev {token_accuracy(model, dev):.3f}")


if __name__ == "__main__":
    main()
