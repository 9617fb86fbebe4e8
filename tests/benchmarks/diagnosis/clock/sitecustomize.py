"""First in PYTHONPATH of a bare run: writes down when each optimizer step ended. Nothing of gpumon is in it.

The file of a process begins with the moment of its first module call. Beside it are the ends of its backward
passes, for a library whose optimizer is not one of torch's.
"""

import os
import struct
import time


def _stamp(fd: int) -> None:
    os.write(fd, struct.pack("d", time.monotonic()))


def _watch(folder: str) -> None:
    import torch
    from torch.nn.modules.module import register_module_forward_pre_hook
    from torch.optim.optimizer import register_optimizer_step_post_hook

    files: dict[tuple[int, str], int] = {}
    original = torch.autograd.backward

    def file(kind: str) -> int:
        """The file of this process: workers are forked, and ranks may be."""
        key = os.getpid(), kind
        if key not in files:
            path = os.path.join(folder, f"{key[0]}.{kind}")
            files[key] = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        return files[key]

    def first_call(*_: object) -> None:
        handle.remove()
        _stamp(file("stamps"))

    def backward(*args: object, **kwargs: object) -> object:
        done = original(*args, **kwargs)
        _stamp(file("passes"))
        return done

    handle = register_module_forward_pre_hook(first_call)
    register_optimizer_step_post_hook(lambda *_: _stamp(file("stamps")))
    torch.autograd.backward = backward


if os.environ.get("STAMPS"):
    _watch(os.environ["STAMPS"])
