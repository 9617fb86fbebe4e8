"""Odds and ends."""


class AttrDict(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


class Meter:
    """Means of what was handed in since the last time somebody asked."""

    def __init__(self):
        self.sums, self.count = {}, 0

    def update(self, **losses):
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0) + value.detach()
        self.count += 1

    def flush(self):
        line = ", ".join(f"{name}: {float(value) / self.count:.3f}" for name, value in self.sums.items())
        self.sums, self.count = {}, 0
        return line
