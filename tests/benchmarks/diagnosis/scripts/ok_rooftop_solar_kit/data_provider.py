"""One long table of hours, split in time, scaled by its first part."""

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, SequentialSampler


def make_table(args):
    rng = np.random.default_rng(args.seed)
    hour = np.arange(args.hours)
    sun = np.clip(np.sin(2 * np.pi * (hour % 24 - 6) / 24), 0, None)
    season = 1 + 0.3 * np.sin(2 * np.pi * hour / 1600)
    clouds = 1 / (1 + np.exp(-np.convolve(rng.normal(size=args.hours), np.ones(8), "same") / 2))
    power = sun * season * clouds
    columns = [power] + [
        np.roll(power, lag) * rng.uniform(0.5, 1.5) + rng.normal(0, 0.05, args.hours)
        for lag in range(1, args.channels)
    ]
    marks = np.stack([hour % 24 / 23 - 0.5, hour // 24 % 7 / 6 - 0.5, hour % 1600 / 1600 - 0.5], 1)
    return np.stack(columns, 1).astype(np.float32), marks.astype(np.float32)


class SolarHours(Dataset):
    """All windows of one part of the table. Asked for the numbers of a batch, it gives the batch."""

    SPANS = {"train": (0.0, 0.7), "val": (0.7, 0.85), "test": (0.85, 1.0)}

    def __init__(self, table, marks, args, flag):
        first, last = (int(share * len(table)) for share in self.SPANS[flag])
        known = table[: int(0.7 * len(table))]
        scaled = (table - known.mean(0)) / known.std(0)
        first = max(0, first - args.seq_len)
        self.args = args
        self.values, self.marks = torch.from_numpy(scaled[first:last]), torch.from_numpy(marks[first:last])
        self.reads = torch.arange(args.seq_len)
        self.writes = torch.arange(args.label_len + args.pred_len) + args.seq_len - args.label_len

    def __len__(self):
        return len(self.values) - self.args.seq_len - self.args.pred_len + 1

    def __getitem__(self, numbers):
        start = torch.as_tensor(numbers)[:, None]
        past, future = start + self.reads, start + self.writes
        return self.values[past], self.values[future], self.marks[past], self.marks[future]


def data_provider(table, marks, args, flag):
    dataset = SolarHours(table, marks, args, flag)
    order = RandomSampler(dataset) if flag == "train" else SequentialSampler(dataset)
    batches = BatchSampler(order, args.batch_size, drop_last=flag == "train")
    return DataLoader(dataset, sampler=batches, batch_size=None)
