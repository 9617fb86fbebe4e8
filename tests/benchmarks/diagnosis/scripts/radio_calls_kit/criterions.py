"""Losses, and how many errors an utterance has."""

import torch.nn.functional as F

from radio_calls_kit.tasks import BLANK, PAD

CRITERIONS = {}


def register_criterion(name):
    def keep(cls):
        CRITERIONS[name] = cls
        return cls

    return keep


def edit_distance(one, other):
    """Levenshtein's, a row of the table at a time."""
    previous = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b)))
        previous = row
    return previous[-1]


@register_criterion("hybrid")
class HybridCTCAttention:
    def __init__(self, task, args):
        self.dictionary, self.args = task.dictionary, args

    def __call__(self, model, sample, report_errors):
        scores, frames, lengths = model(sample["source"], sample["source_lengths"], sample["prev_output"])
        attention = F.cross_entropy(
            scores.transpose(1, 2),
            sample["target"],
            ignore_index=PAD,
            label_smoothing=self.args.label_smoothing,
        )
        ctc = F.ctc_loss(
            frames.log_softmax(2).transpose(0, 1),
            sample["letters"],
            lengths,
            sample["letter_lengths"],
            blank=BLANK,
            zero_infinity=True,
        )
        loss = (1 - self.args.ctc_weight) * attention + self.args.ctc_weight * ctc
        logging_output = {"loss": loss.detach(), "ctc": ctc.detach()}
        if report_errors:
            logging_output.update(self.errors(scores.detach(), sample["target"]))
        return loss, logging_output

    def errors(self, scores, target):
        letters = words = letter_errors = word_errors = 0
        for guess, truth in zip(scores.argmax(2).tolist(), target.tolist()):
            truth = self.dictionary.string(truth)
            guess = self.dictionary.string(guess[: len(truth) + 1])
            letter_errors += edit_distance(guess, truth)
            word_errors += edit_distance(guess.split(), truth.split())
            letters += len(truth)
            words += len(truth.split())
        return {"cer": letter_errors / letters, "wer": word_errors / words}
