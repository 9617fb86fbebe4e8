"""What is printed while it trains."""

from collections import defaultdict


class SmoothedValue:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.total = self.total + value
        self.count += 1

    @property
    def global_avg(self):
        return float(self.total) / max(self.count, 1)


class MetricLogger:
    def __init__(self, delimiter="  "):
        self.meters = defaultdict(SmoothedValue)
        self.delimiter = delimiter

    def update(self, **values):
        for name, value in values.items():
            self.meters[name].update(value)

    def __str__(self):
        return self.delimiter.join(f"{name}: {meter.global_avg:.3f}" for name, meter in self.meters.items())

    def log_every(self, iterable, print_freq, header):
        for i, item in enumerate(iterable):
            yield item
            if i % print_freq == 0:
                print(self.delimiter.join([header, f"[{i}/{len(iterable)}]", str(self)]))
