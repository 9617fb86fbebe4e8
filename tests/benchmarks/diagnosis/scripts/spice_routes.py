"""Who traded which spice with whom: RotatE on a knowledge graph, self-adversarial negatives, a small package beside it."""

from spice_routes_kit.options import Options
from spice_routes_kit.trainer import Trainer

if __name__ == "__main__":
    Trainer(Options.from_command_line()).train()
