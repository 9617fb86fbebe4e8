"""Toys on a carpet as a set of boxes: queries, Hungarian matching, auxiliary losses; a project of several files."""

import argparse
import time

import torch
from ok_set_kit.criterion import SetCriterion
from ok_set_kit.data import Carpet, collate_fn
from ok_set_kit.detr import build_detr
from ok_set_kit.engine import evaluate, train_one_epoch
from ok_set_kit.matcher import HungarianMatcher
from torch.utils.data import DataLoader


def get_args_parser():
    parser = argparse.ArgumentParser("Set prediction detector", add_help=False)
    parser.add_argument("--lr", default=5e-4, type=float)
    parser.add_argument("--lr_backbone", default=2e-4, type=float)
    parser.add_argument("--batch_size", default=16, type=int)
    parser.add_argument("--epochs", default=8, type=int)
    parser.add_argument("--lr_drop", default=6, type=int)
    parser.add_argument("--eval_every", default=4, type=int)
    parser.add_argument("--clip_max_norm", default=0.5, type=float)
    parser.add_argument("--hidden_dim", default=64, type=int)
    parser.add_argument("--nheads", default=4, type=int)
    parser.add_argument("--enc_layers", default=2, type=int)
    parser.add_argument("--dec_layers", default=2, type=int)
    parser.add_argument("--num_queries", default=12, type=int)
    parser.add_argument("--num_classes", default=5, type=int)
    parser.add_argument("--eos_coef", default=0.2, type=float)
    parser.add_argument("--seed", default=42, type=int)
    return parser


def main(args):
    torch.manual_seed(args.seed)
    model = build_detr(args)
    weights = {"loss_ce": 1.0, "loss_bbox": 5.0, "loss_giou": 2.0}
    criterion = SetCriterion(args.num_classes, HungarianMatcher(1.0, 5.0, 2.0), weights, args.eos_coef)
    backbone = [p for n, p in model.named_parameters() if "backbone" in n]
    rest = [p for n, p in model.named_parameters() if "backbone" not in n]
    optimizer = torch.optim.AdamW(
        [{"params": rest}, {"params": backbone, "lr": args.lr_backbone}],
        lr=args.lr,
        weight_decay=1e-4,
        fused=True,
    )
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, args.lr_drop)
    train_loader = DataLoader(
        Carpet(640, args.num_classes, args.seed),
        args.batch_size,
        shuffle=True,
        drop_last=True,
        collate_fn=collate_fn,
    )
    val_loader = DataLoader(Carpet(64, args.num_classes, args.seed + 1), 32, collate_fn=collate_fn)
    start = time.time()
    for epoch in range(args.epochs):
        train_one_epoch(model, criterion, train_loader, optimizer, epoch, args.clip_max_norm)
        lr_scheduler.step()
        if (epoch + 1) % args.eval_every == 0:
            print(f"Test: {evaluate(model, criterion, val_loader)}")
    print(f"Training time {time.time() - start:.0f} s")


if __name__ == "__main__":
    main(argparse.ArgumentParser(parents=[get_args_parser()]).parse_args())
