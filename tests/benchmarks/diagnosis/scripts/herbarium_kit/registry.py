class Registry:
    """Name → class, filled by a decorator."""

    def __init__(self, kind):
        self.kind, self.known = kind, {}

    def register(self, cls):
        self.known[cls.__name__] = cls
        return cls

    def build(self, cfg, **extra):
        cfg = dict(cfg)
        return self.known[cfg.pop("type")](**cfg, **extra)


DATASETS = Registry("dataset")
MODELS = Registry("model")
HOOKS = Registry("hook")
