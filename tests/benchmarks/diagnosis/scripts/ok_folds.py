"""Cross-validation of a credit model: folds, validation after every epoch, best weights restored at the end."""

import copy
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Hyper:
    rows: int = 16_000
    columns: int = 40
    folds: int = 4
    epochs: int = 5
    batch: int = 256
    width: int = 384
    lr: float = 1e-3
    patience: int = 3


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.waited = patience, 0
        self.best, self.state = -1.0, None

    def update(self, score, model):
        if score > self.best:
            self.best, self.waited = score, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


def network(hp):
    return nn.Sequential(
        nn.Linear(hp.columns, hp.width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(hp.width, hp.width), nn.ReLU(),
        nn.Linear(hp.width, hp.width), nn.ReLU(), nn.Linear(hp.width, 1), nn.Flatten(0),
    )  # fmt: skip


@torch.no_grad()
def auc(model, x, y):
    model.eval()
    score = roc_auc_score(y, torch.cat([model(part) for part in x.split(2048)]).numpy())
    model.train()
    return score


def fit_fold(x, y, train, valid, hp):
    scaler = StandardScaler().fit(x[train])
    features = torch.from_numpy(scaler.transform(x[train]).astype(np.float32))
    held = torch.from_numpy(scaler.transform(x[valid]).astype(np.float32))
    data = TensorDataset(features, torch.from_numpy(y[train].astype(np.float32)))
    loader = DataLoader(
        range(len(data)),
        batch_size=hp.batch,
        shuffle=True,
        drop_last=True,
        collate_fn=lambda rows: data[rows],
    )
    model = network(hp)
    optimizer = torch.optim.AdamW(model.parameters(), lr=hp.lr, fused=True)
    stopping = EarlyStopping(hp.patience)
    for _ in range(hp.epochs):
        for inputs, targets in loader:
            loss = F.binary_cross_entropy_with_logits(model(inputs), targets)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        if stopping.update(auc(model, held, y[valid]), model):
            break
    model.load_state_dict(stopping.state)
    return stopping.best


if __name__ == "__main__":
    hp = Hyper()
    torch.manual_seed(70)
    rng = np.random.default_rng(70)
    x = rng.normal(size=(hp.rows, hp.columns))
    y = (x[:, 0] * x[:, 1] + x[:, 2] + rng.normal(size=hp.rows) > 0).astype(np.int64)
    scores = [
        fit_fold(x, y, a, b, hp)
        for a, b in StratifiedKFold(hp.folds, shuffle=True, random_state=0).split(x, y)
    ]
    print(f"AUC {np.mean(scores):.4f} ± {np.std(scores):.4f}")
