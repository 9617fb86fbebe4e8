"""Power of a roof for the next day: a transformer with a start sequence in an experiment class, a package beside it."""

import argparse

import torch
from ok_rooftop_solar_kit.exp_forecast import Exp_Forecast

parser = argparse.ArgumentParser(description="long series forecasting")
parser.add_argument("--seq_len", type=int, default=72)
parser.add_argument("--label_len", type=int, default=24)
parser.add_argument("--pred_len", type=int, default=24)
parser.add_argument("--channels", type=int, default=7)
parser.add_argument("--d_model", type=int, default=64)
parser.add_argument("--n_heads", type=int, default=4)
parser.add_argument("--e_layers", type=int, default=2)
parser.add_argument("--d_layers", type=int, default=1)
parser.add_argument("--dropout", type=float, default=0.05)
parser.add_argument("--hours", type=int, default=2600)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--train_epochs", type=int, default=3)
parser.add_argument("--learning_rate", type=float, default=1e-3)
parser.add_argument("--patience", type=int, default=3)
parser.add_argument("--seed", type=int, default=2021)

if __name__ == "__main__":
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    exp = Exp_Forecast(args)
    exp.train()
    print("test: mse {:.4f}, mae {:.4f}".format(*exp.test()))
