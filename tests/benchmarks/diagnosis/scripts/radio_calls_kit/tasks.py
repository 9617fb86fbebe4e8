"""A task has a dictionary, utterances in batches, and builds the model."""

import torch

from radio_calls_kit.model import SpeechTransformer

TASKS = {}
WORDS = (
    "alpha bravo charlie delta echo foxtrot golf hotel india kilo lima mike november over roger tango".split()
)
PAD, BLANK, START, END = 0, 1, 2, 3


def register_task(name):
    def keep(cls):
        TASKS[name] = cls
        return cls

    return keep


class Dictionary:
    def __init__(self, letters):
        self.symbols = ["<pad>", "<blank>", "<s>", "</s>", *letters]
        self.indices = {symbol: n for n, symbol in enumerate(self.symbols)}

    def __len__(self):
        return len(self.symbols)

    def encode(self, text):
        return [self.indices[letter] for letter in text]

    def string(self, row):
        letters = []
        for number in row:
            if number == END:
                break
            if number > END:
                letters.append(self.symbols[number])
        return "".join(letters)


@register_task("radio")
class RadioTask:
    """Eight words of the spelling alphabet; each letter sounds for four frames, with noise."""

    def __init__(self, args, utterances=320, bands=40):
        self.args, self.bands = args, bands
        generator = torch.Generator().manual_seed(args.seed)
        self.dictionary = Dictionary(sorted(set("".join(WORDS)) | {" "}))
        self.sounds = torch.randn(len(self.dictionary), bands, generator=generator)
        self.texts, self.spectra = [], []
        for _ in range(utterances):
            chosen = torch.randint(len(WORDS), (8,), generator=generator).tolist()
            numbers = torch.tensor(self.dictionary.encode(" ".join(WORDS[n] for n in chosen)))
            frames = self.sounds[numbers].repeat_interleave(4, 0)
            self.texts.append(numbers)
            self.spectra.append(frames + 0.5 * torch.randn(frames.shape, generator=generator))
        self.batches = self._batches()

    def _batches(self):
        """Utterances of like length together, so that little is padded."""
        order = sorted(range(len(self.texts)), key=lambda n: len(self.texts[n]))
        size = self.args.batch_size
        return [self.collater(order[i : i + size]) for i in range(0, len(order), size)]

    def collater(self, rows):
        pad = torch.nn.utils.rnn.pad_sequence
        texts = [self.texts[n] for n in rows]
        start, end = torch.tensor([START]), torch.tensor([END])
        return {
            "source": pad([self.spectra[n] for n in rows], batch_first=True),
            "source_lengths": torch.tensor([len(self.spectra[n]) for n in rows]),
            "prev_output": pad([torch.cat([start, one]) for one in texts], batch_first=True),
            "target": pad([torch.cat([one, end]) for one in texts], batch_first=True),
            "letters": torch.cat(texts),
            "letter_lengths": torch.tensor([len(one) for one in texts]),
        }

    def epoch(self):
        for n in torch.randperm(len(self.batches)).tolist():
            yield self.batches[n]

    def build_model(self):
        return SpeechTransformer(self.bands, len(self.dictionary))
