"""What the truth needs to know about the loop: when the host waited for a batch, and where steps end."""

from typing import Any


def watch(torch: Any, native: Any) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.utils.data import dataloader

    _watch_loader(dataloader._BaseDataLoaderIter, native)
    register_optimizer_step_post_hook(lambda optimizer, args, kwargs: native.mark_step())


def _watch_loader(iterator: Any, native: Any) -> None:
    plain = iterator.__next__

    def __next__(self: Any) -> Any:
        begin = native.now()
        try:
            return plain(self)
        finally:
            native.record_data_wait(begin)

    iterator.__next__ = __next__
