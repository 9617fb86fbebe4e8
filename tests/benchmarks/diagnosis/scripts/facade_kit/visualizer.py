"""Losses, on the screen and in a file."""

from pathlib import Path


class Visualizer:
    def __init__(self, opt):
        self.log_name = Path(opt.checkpoints_dir) / "loss_log.txt"

    def print_current_losses(self, epoch, iters, losses):
        message = f"(epoch {epoch}, iters {iters}) " + " ".join(f"{k}: {v:.3f}" for k, v in losses.items())
        print(message)
        with open(self.log_name, "a") as log_file:
            log_file.write(message + "\n")
