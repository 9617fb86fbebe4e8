"""The backend "nccl" on the stand-in: gloo moves the values, and the device's timeline gets a kernel.

A collective begins on a rank when its stream comes to it and ends on all ranks at the same moment, when the
last one has come to it and the exchange has taken its time. A rank learns of the end only once all ranks have
launched it, so a host that waits for a collective cannot run ahead of a rank that has not launched its own.
"""

import ctypes
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

NAME = "standin"
EXCHANGE_US, EXCHANGE_GB_S = 20.0, 20.0
"""Fixed time of every collective, and what goes between two ranks a second."""


def offer(torch: Any, native: Any) -> None:
    """Scripts ask for "nccl" and get this."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    if not dist.is_available():
        return
    group = _group_class(torch, dist, native)
    dist.Backend.register_backend(NAME, group, devices=["cuda", "cpu"])
    plain = c10d.init_process_group

    def init_process_group(backend: str | None = None, *args: Any, **options: Any) -> None:
        wanted = NAME if backend is None or "nccl" in backend else backend
        options.pop("device_id", None)
        plain(wanted, *args, **options)

    for module in (dist, c10d):
        module.init_process_group = init_process_group
        module.is_nccl_available = lambda: True


def host_view(torch: Any, tensor: Any) -> Any:
    """The same memory as a tensor of the CPU: the stand-in's memory is the host's."""
    if tensor.device.type == "cpu":
        return tensor
    assert tensor.is_contiguous()
    size = tensor.numel() * tensor.element_size()
    memory = (ctypes.c_char * size).from_address(tensor.data_ptr())
    return torch.frombuffer(memory, dtype=tensor.dtype).view(tensor.shape)


def _group_class(torch: Any, dist: Any, native: Any) -> type:
    class Done(dist._Work):  # type: ignore[misc,name-defined]
        def __init__(self, future: Any) -> None:
            super().__init__()
            self._future = future

        def wait(self, timeout: Any = None) -> bool:
            self._future.wait()
            return True

        def is_completed(self) -> bool:
            return bool(self._future.done())

        def get_future(self) -> Any:
            return self._future

    def done(result: Any) -> Done:
        future = torch.futures.Future()
        future.set_result(result)
        return Done(future)

    class Group(dist.ProcessGroup):  # type: ignore[misc,name-defined]
        def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
            super().__init__(rank, size)
            self._size = size
            self._gloo = dist.ProcessGroupGloo(store, rank, size, timeout)
            self._streams: dict[int, Any] = {}
            self._ends: dict[int, int] = {}
            self._finisher = ThreadPoolExecutor(max_workers=1)

        def getBackendName(self) -> str:
            return NAME

        def allreduce(self, tensors: list[Any], opts: Any = None) -> Any:
            """Asynchronous, on a stream of its own, like NCCL's."""
            (tensor,) = tensors
            opts = opts or dist.AllreduceOptions()
            if tensor.device.type == "cpu":
                return self._gloo.allreduce(tensors, opts)
            index, stream = tensor.device.index, self._stream(tensor.device)
            begin = native.mark(index, stream.stream_id)
            launch = native.now(), threading.get_native_id()
            arrivals = [torch.zeros(1, dtype=torch.int64) for _ in range(self._size)]
            works = [
                self._gloo.allreduce([host_view(torch, tensor)], opts),
                self._gloo.allgather([arrivals], [torch.tensor([begin])]),
            ]
            future = torch.futures.Future(devices=[tensor.device])

            def finish() -> None:
                try:
                    for work in works:
                        work.wait()
                    first = max(begin, self._ends.get(index, 0))
                    end = max(first, *(int(one) for one in arrivals)) + _nanos(tensor, self._size)
                    self._ends[index] = end
                    native.exchange(index, stream.stream_id, first, end, tensor.nbytes, *launch)
                    with torch.cuda.stream(stream):
                        future.set_result([tensor])
                except RuntimeError as error:  # another rank is gone
                    future.set_exception(error)

            self._finisher.submit(finish)
            return Done(future)

        def _stream(self, device: Any) -> Any:
            """Of collectives on the device; it has waited for what is launched so far."""
            if device.index not in self._streams:
                self._streams[device.index] = torch.cuda.Stream(device)
            stream = self._streams[device.index]
            stream.wait_stream(torch.cuda.current_stream(device))
            return stream

        def broadcast(self, tensors: list[Any], opts: Any = None) -> Any:
            """This one and those below are for set-up: they wait."""
            torch.cuda.synchronize()
            views = [host_view(torch, one) for one in tensors]
            self._gloo.broadcast(views, opts or dist.BroadcastOptions()).wait()
            return done(tensors)

        def allgather(self, outputs: list[Any], inputs: list[Any], opts: Any = None) -> Any:
            torch.cuda.synchronize()
            into = [[host_view(torch, one) for one in some] for some in outputs]
            self._gloo.allgather(into, [host_view(torch, one) for one in inputs]).wait()
            return done(outputs)

        def barrier(self, opts: Any = None) -> Any:
            torch.cuda.synchronize()
            self._gloo.barrier().wait()
            return done(None)

    return Group


def _nanos(tensor: Any, size: int) -> int:
    """A ring sends 2 (n - 1) / n of the bytes."""
    seconds = 2 * (size - 1) / size * tensor.nbytes / (EXCHANGE_GB_S * 1e9)
    return math.ceil(EXCHANGE_US * 1e3 + seconds * 1e9)
