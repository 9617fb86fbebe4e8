"""Storages on the device: a CPU build cannot create them directly, but a tensor's storage will do."""

from typing import Any


def repair(torch: Any) -> None:
    """`torch.load(..., map_location="cuda")` moves storages, not tensors."""
    plain = torch.UntypedStorage.cuda

    def cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        if self.device.type == "cuda" and device is None:
            return plain(self, device, non_blocking)
        target = torch.device("cuda", torch.cuda._utils._get_device_index(device, optional=True))
        made = torch.empty(self.nbytes(), dtype=torch.uint8, device=target).untyped_storage()
        return made.copy_(self, non_blocking)

    def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        device = torch.device(device)
        if device.type == "cuda":
            return cuda(self, device, non_blocking)
        return plain_to(self, device=device, non_blocking=non_blocking)

    plain_to = torch.UntypedStorage.to
    torch.UntypedStorage.cuda = cuda
    torch.UntypedStorage.to = to
