"""Stop early, learn slower."""

import copy


class EarlyStopping:
    """Keeps the best weights in memory."""

    def __init__(self, patience):
        self.patience, self.counter, self.best, self.weights = patience, 0, None, None

    def __call__(self, loss, model):
        if self.best is None or loss < self.best:
            self.best, self.counter = loss, 0
            self.weights = copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
        return self.counter >= self.patience


def adjust_learning_rate(optimizer, epoch, args):
    for group in optimizer.param_groups:
        group["lr"] = args.learning_rate * 0.5 ** (epoch - 1)
