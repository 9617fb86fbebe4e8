"""Questions find their answers: two towers, a queue of earlier answers by a slowly moving encoder, warm-up."""

import argparse
import copy
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pad_sequence

PAD = 0


def make_tickets(count, vocabulary, rng):
    """A ticket has a topic; question and answer share some of its words."""
    topics = [rng.sample(range(1, vocabulary), 40) for _ in range(400)]
    for _ in range(count):
        words = rng.choice(topics)
        question = rng.choices(words, k=rng.randint(8, 16)) + rng.choices(range(1, vocabulary), k=4)
        answer = rng.choices(words, k=rng.randint(24, 44)) + rng.choices(range(1, vocabulary), k=8)
        yield torch.tensor(question), torch.tensor(answer)


class TicketBatches:
    """Padded once; tickets of like length lie in one batch, and batches come in any order."""

    def __init__(self, tickets, batch_size):
        tickets = sorted(tickets, key=lambda pair: len(pair[1]))
        whole = len(tickets) // batch_size * batch_size
        self.batches = [
            tuple(pad_sequence(side, batch_first=True) for side in zip(*tickets[start : start + batch_size]))
            for start in range(0, whole, batch_size)
        ]

    def __iter__(self):
        yield from (self.batches[n] for n in torch.randperm(len(self.batches)).tolist())

    def __len__(self):
        return len(self.batches)


class Tower(nn.Module):
    def __init__(self, vocabulary, width, layers, longest=64, out=64):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.places = nn.Parameter(0.02 * torch.randn(longest, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 3 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.out = nn.Linear(width, out)

    def forward(self, text):
        empty = text == PAD
        x = self.words(text) + self.places[: text.shape[1]]
        x = self.layers(x, src_key_padding_mask=empty)
        there = (~empty).unsqueeze(2)
        return F.normalize(self.out((x * there).sum(1) / there.sum(1)), dim=1)


class BiEncoder(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.question = Tower(args.vocabulary, args.width, args.layers)
        self.answer = Tower(args.vocabulary, args.width, args.layers)
        self.slow = copy.deepcopy(self.answer).requires_grad_(False)
        self.temperature, self.momentum = args.temperature, args.momentum
        self.register_buffer("queue", F.normalize(torch.randn(args.queue, 64), dim=1))
        self.register_buffer("fill", torch.zeros((), dtype=torch.long))

    def train(self, mode=True):
        super().train(mode)
        self.slow.eval()
        return self

    @torch.no_grad()
    def follow(self):
        torch._foreach_lerp_(list(self.slow.parameters()), list(self.answer.parameters()), 1 - self.momentum)

    @torch.no_grad()
    def enqueue(self, answers):
        place = int(self.fill) % len(self.queue)
        self.queue[place : place + len(answers)] = self.slow(answers)
        self.fill += len(answers)

    def forward(self, questions, answers):
        asked, answered = self.question(questions), self.answer(answers)
        in_batch, in_queue = asked @ answered.T, asked @ self.queue.T
        scores = torch.cat([in_batch, in_queue], 1) / self.temperature
        truth = torch.arange(len(asked))
        back = F.cross_entropy(in_batch.T / self.temperature, truth)
        return 0.5 * (F.cross_entropy(scores, truth) + back)


@torch.no_grad()
def recall_at(k, model, batches):
    model.eval()
    asked = torch.cat([model.question(q) for q, _ in batches.batches])
    answered = torch.cat([model.answer(a) for _, a in batches.batches])
    best = (asked @ answered.T).topk(k, 1).indices
    return (best == torch.arange(len(asked))[:, None]).any(1).float().mean().item()


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--tickets", type=int, default=1600)
    cli.add_argument("--vocabulary", type=int, default=2000)
    cli.add_argument("--width", type=int, default=96)
    cli.add_argument("--layers", type=int, default=1)
    cli.add_argument("--batch-size", type=int, default=32)
    cli.add_argument("--queue", type=int, default=1024)
    cli.add_argument("--momentum", type=float, default=0.99)
    cli.add_argument("--temperature", type=float, default=0.07)
    cli.add_argument("--epochs", type=int, default=5)
    cli.add_argument("--lr", type=float, default=1e-3)
    args = cli.parse_args()
    rng = random.Random(55)
    torch.manual_seed(55)
    tickets = list(make_tickets(args.tickets + 128, args.vocabulary, rng))
    held_out = TicketBatches(tickets[:128], args.batch_size)
    training = TicketBatches(tickets[128:], args.batch_size)
    model = BiEncoder(args)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.lr, fused=True)
    steps = args.epochs * len(training)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 40, 1.05 - step / steps)
    )
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for questions, answers in training:
            loss = model(questions, answers)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            schedule.step()
            model.follow()
            model.enqueue(answers)
            losses.append(loss.detach())
        mean = torch.stack(losses).mean().item()
        print(f"epoch {epoch}: loss {mean:.3f}, recall@10 {recall_at(10, model, held_out):.3f}")


if __name__ == "__main__":
    main()
