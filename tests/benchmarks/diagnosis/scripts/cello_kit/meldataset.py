"""Mel spectrograms, and the recordings they are made of."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

mel_basis = {}
hann_window = {}


def hz_to_mel(frequencies):
    """Slaney's scale: linear at first, then logarithmic."""
    frequencies = np.asanyarray(frequencies, dtype=np.float64)
    linear = frequencies * 3 / 200
    return np.where(
        frequencies < 1000, linear, 15 + np.log(np.maximum(frequencies, 1e-9) / 1000) * 27 / np.log(6.4)
    )


def mel_to_hz(mels):
    return np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(np.log(6.4) / 27 * (mels - 15)))


def mel_filters(sampling_rate, n_fft, num_mels, fmin, fmax):
    """Triangles over the bins of a spectrum, each of area one."""
    bins = np.linspace(0, sampling_rate / 2, n_fft // 2 + 1)
    corners = mel_to_hz(np.linspace(hz_to_mel(fmin), hz_to_mel(fmax), num_mels + 2))
    filters = np.zeros((num_mels, len(bins)))
    for n in range(num_mels):
        left, middle, right = corners[n : n + 3]
        rising = (bins - left) / (middle - left)
        falling = (right - bins) / (right - middle)
        filters[n] = np.maximum(0, np.minimum(rising, falling)) * 2 / (right - left)
    return torch.from_numpy(filters).float()


def kept_name(n_fft, num_mels, fmax, device):
    return f"{n_fft}_{num_mels}_{fmax}_{device}"


def lookup(n_fft, num_mels, fmax, device):
    return fmax


def mel_spectrogram(y, n_fft, num_mels, sampling_rate, hop_size, fmin=0, fmax=None):
    fmax = fmax or sampling_rate / 2
    name = kept_name(n_fft, num_mels, fmax, y.device)
    if lookup(n_fft, num_mels, fmax, y.device) not in mel_basis:
        mel_basis[name] = mel_filters(sampling_rate, n_fft, num_mels, fmin, fmax).to(y.device)
        hann_window[name] = torch.hann_window(n_fft).to(y.device)
    y = torch.nn.functional.pad(y[:, None], ((n_fft - hop_size) // 2,) * 2, mode="reflect").squeeze(1)
    spec = torch.stft(y, n_fft, hop_size, n_fft, hann_window[name], center=False, return_complex=True)
    power = torch.view_as_real(spec).square().sum(-1)
    return torch.log(torch.clamp(mel_basis[name] @ torch.sqrt(power + 1e-9), min=1e-5))


def multi_mel(y, h):
    """Fine in pitch, fine in time, and in between."""
    return [
        mel_spectrogram(y, n_fft, num_mels, h.sampling_rate, n_fft // 4)
        for n_fft, num_mels in zip(h.loss_ffts, h.loss_mels)
    ]


class MelDataset(Dataset):
    """Bowed notes with overtones; pieces of them, always on the frames of the spectrogram."""

    def __init__(self, h):
        g = torch.Generator().manual_seed(h.seed)
        t = torch.arange(int(h.seconds * h.sampling_rate)) / h.sampling_rate
        pitch = 65 * 2 ** (3 * torch.rand(h.recordings, 1, generator=g))
        phase = 2 * torch.pi * pitch * t + 0.3 * torch.sin(2 * torch.pi * 5 * t)
        notes = sum(torch.sin(k * phase) / k for k in range(1, 7)) * (1 - torch.exp(-20 * t))
        self.audio = 0.3 * notes + 0.01 * torch.randn(notes.shape, generator=g)
        self.mel = mel_spectrogram(self.audio, h.n_fft, h.num_mels, h.sampling_rate, h.hop_size)
        self.frames = h.segment_size // h.hop_size
        self.hop_size = h.hop_size

    def __len__(self):
        return len(self.audio)

    def __getitem__(self, index):
        start = int(torch.randint(self.mel.shape[2] - self.frames, (1,)))
        audio = self.audio[index, start * self.hop_size : (start + self.frames) * self.hop_size]
        return self.mel[index, :, start : start + self.frames], audio


def get_loader(dataset, h):
    return DataLoader(dataset, batch_size=h.batch_size, shuffle=True, drop_last=True)
