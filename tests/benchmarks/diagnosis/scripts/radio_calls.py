"""What was said over the radio: spectra to letters with attention and CTC; task, criterion and trainer in a package."""

import argparse

from radio_calls_kit import criterions, tasks
from radio_calls_kit.trainer import Trainer


def cli_main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", choices=sorted(tasks.TASKS), default="radio")
    parser.add_argument("--criterion", choices=sorted(criterions.CRITERIONS), default="hybrid")
    parser.add_argument("--max-update", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--warmup-updates", type=int, default=40)
    parser.add_argument("--clip-norm", type=float, default=5.0)
    parser.add_argument("--ctc-weight", type=float, default=0.3)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--log-interval", type=int, default=40)
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--fixed", action="store_true", help="error rates only for the lines in the log")
    args = parser.parse_args()
    Trainer(args).train()


if __name__ == "__main__":
    cli_main()
