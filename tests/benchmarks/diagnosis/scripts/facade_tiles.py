"""From sketches of house fronts to house fronts: paired translation with a patch discriminator, a project of several files."""

import time

import torch
from facade_kit.data import create_dataset
from facade_kit.models import create_model
from facade_kit.options import TrainOptions
from facade_kit.visualizer import Visualizer

if __name__ == "__main__":
    opt = TrainOptions().parse()
    torch.manual_seed(opt.seed)
    dataset = create_dataset(opt)
    model = create_model(opt)
    visualizer = Visualizer(opt)
    total_iters = 0
    for epoch in range(1, opt.n_epochs + opt.n_epochs_decay + 1):
        started = time.time()
        for data in dataset:
            total_iters += 1
            model.set_input(data)
            model.optimize_parameters()
            if total_iters % opt.print_freq == 0:
                visualizer.print_current_losses(epoch, total_iters, model.get_current_losses())
        model.update_learning_rate()
        print(f"end of epoch {epoch}, {time.time() - started:.1f} s")
    model.save_networks("latest")
