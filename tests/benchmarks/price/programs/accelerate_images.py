"""Image classification with accelerate: workers that decode and augment, an evaluation after every epoch."""

import argparse
import io

import torch
from accelerate import Accelerator
from PIL import Image, ImageEnhance
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, count: int, train: bool) -> None:
        generator = torch.Generator().manual_seed(count)
        self.labels = torch.randint(0, 10, (count,), generator=generator).tolist()
        self.files = [self._encode(label, generator) for label in self.labels]
        self.train = train

    @staticmethod
    def _encode(label: int, generator: torch.Generator) -> bytes:
        pixels = torch.rand(48, 48, 3, generator=generator) * 100 + label * 15
        file = io.BytesIO()
        Image.fromarray(pixels.to(torch.uint8).numpy()).save(file, "PNG")
        return file.getvalue()

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = Image.open(io.BytesIO(self.files[index])).convert("RGB").resize((32, 32))
        if self.train and index % 2:
            picture = ImageEnhance.Color(picture.rotate(8)).enhance(1.3)
        values = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
        return values.view(32, 32, 3).permute(2, 0, 1) / 255, self.labels[index]


def make_model() -> nn.Module:
    layers: list[nn.Module] = []
    width = 3
    for channels in (16, 32, 64):
        layers += [nn.Conv2d(width, channels, 3, 2, 1), nn.BatchNorm2d(channels), nn.ReLU()]
        width = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--pictures", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    train = DataLoader(Pictures(args.pictures, True), batch_size=32, shuffle=True, num_workers=4)
    test = DataLoader(Pictures(args.pictures // 4, False), batch_size=64, num_workers=4)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=3e-3, epochs=args.epochs, steps_per_epoch=len(train)
    )
    model, optimizer, train, test, schedule = accelerator.prepare(model, optimizer, train, test, schedule)
    for epoch in range(args.epochs):
        model.train()
        for images, labels in train:
            loss = nn.functional.cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        model.eval()
        right = seen = 0
        for images, labels in test:
            with torch.no_grad():
                guesses = model(images).argmax(-1)
            guesses, labels = accelerator.gather_for_metrics((guesses, labels))
            right += (guesses == labels).sum().item()
            seen += len(labels)
        accelerator.print(f"epoch {epoch}: {right / seen:.2%}")


if __name__ == "__main__":
    main()
