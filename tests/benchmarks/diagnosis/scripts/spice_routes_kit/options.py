"""All settings in one place."""

import argparse
from dataclasses import dataclass, fields


@dataclass
class Options:
    entities: int = 3000
    relations: int = 24
    triples: int = 24_000
    dim: int = 32
    gamma: float = 6.0
    negatives: int = 96
    batch_size: int = 256
    temperature: float = 1.0
    lr: float = 2e-3
    steps: int = 420
    warm_up: int = 280
    seed: int = 41
    fixed: bool = False

    @classmethod
    def from_command_line(cls):
        cli = argparse.ArgumentParser()
        for one in fields(cls):
            flag = "--" + one.name.replace("_", "-")
            if one.type is bool:
                cli.add_argument(flag, action="store_true", help="negatives of a batch drawn together")
            else:
                cli.add_argument(flag, type=one.type, default=one.default)
        return cls(**vars(cli.parse_args()))
