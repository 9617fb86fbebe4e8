"""Everything that can be chosen on the command line."""

import argparse
import tempfile


class BaseOptions:
    def initialize(self, parser):
        parser.add_argument("--name", default="facades")
        parser.add_argument("--model", default="pix2pix")
        parser.add_argument("--checkpoints_dir", default=None)
        parser.add_argument("--size", type=int, default=64)
        parser.add_argument("--count", type=int, default=320)
        parser.add_argument("--batch_size", type=int, default=8)
        parser.add_argument("--ngf", type=int, default=24)
        parser.add_argument("--ndf", type=int, default=24)
        parser.add_argument("--seed", type=int, default=43)
        return parser

    def parse(self):
        opt = self.initialize(argparse.ArgumentParser()).parse_args()
        opt.checkpoints_dir = opt.checkpoints_dir or tempfile.mkdtemp(prefix="facades-")
        print("  ".join(f"{name}={value}" for name, value in sorted(vars(opt).items())))
        return opt


class TrainOptions(BaseOptions):
    def initialize(self, parser):
        parser = super().initialize(parser)
        parser.add_argument("--n_epochs", type=int, default=3)
        parser.add_argument("--n_epochs_decay", type=int, default=3)
        parser.add_argument("--lr", type=float, default=2e-4)
        parser.add_argument("--beta1", type=float, default=0.5)
        parser.add_argument("--lambda_L1", type=float, default=100.0)
        parser.add_argument("--print_freq", type=int, default=40)
        parser.add_argument("--fixed", action="store_true", help="the discriminator sees detached fakes")
        return parser
