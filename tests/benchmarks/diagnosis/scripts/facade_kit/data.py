"""Pairs of label maps and facades, drawn with rectangles."""

import torch
from torch.utils.data import DataLoader, Dataset


class AlignedDataset(Dataset):
    def __init__(self, opt):
        g = torch.Generator().manual_seed(opt.seed)
        self.A = torch.full((opt.count, 3, opt.size, opt.size), -1.0)
        self.B = torch.full((opt.count, 3, opt.size, opt.size), -0.2)
        self.B += 0.05 * torch.randn(self.B.shape, generator=g)
        wall, glass = torch.rand(2, opt.count, 3, 1, 1, generator=g)
        self.B += wall * 0.6
        for n in range(opt.count):
            rows, cols = torch.randint(2, 5, (2,), generator=g).tolist()
            step_y, step_x = opt.size // rows, opt.size // cols
            for top in range(4, opt.size - 8, step_y):
                for left in range(4, opt.size - 8, step_x):
                    window = slice(top, top + step_y // 2), slice(left, left + step_x // 2)
                    self.A[n, (top + left) % 3, *window] = 1.0
                    self.B[n, :, *window] = glass[n] - 0.5

    def __len__(self):
        return len(self.A)

    def __getitem__(self, index):
        return {"A": self.A[index], "B": self.B[index]}


def create_dataset(opt):
    return DataLoader(AlignedDataset(opt), batch_size=opt.batch_size, shuffle=True, drop_last=True)
