"""Which containers were assigned which devices, from the kubelet's pod-resources socket (gRPC, API v1).

Asked in the background, so a kubelet that does not answer costs a tick nothing. Needs grpcio and protobuf
(``pip install 'gpumon-train[kubernetes]'``), which are imported only if the socket exists.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from monitor.host.procfs import Every

METHOD = "/v1.PodResourcesLister/List"
ASK_SECONDS = 10.0
LOOK_SECONDS = 60.0
ANSWER_SECONDS = 5.0
STALE_SECONDS = 60.0
"""Our choices: how often to ask, and to check for a missing socket; how long an answer may take, and how long
the last one stays valid."""
MOST_BYTES = 16 << 20
"""The limit of the kubelet's own client."""
PLAIN_NUMBERS_OF = "nvidia.com/"
"""A device called "0" is a GPU only if its resource is NVIDIA's."""

FIELDS: dict[str, tuple[tuple[str, int, str], ...]] = {
    "Devices": (("resource_name", 1, ""), ("device_ids", 2, "*")),
    "Container": (("name", 1, ""), ("devices", 2, "Devices")),
    "Pod": (("name", 1, ""), ("namespace", 2, ""), ("containers", 3, "Container")),
    "Answer": (("pod_resources", 1, "Pod"),),
}
"""The fields we read: name, number, and "" for a string, "*" for repeated strings, else a message."""

log = logging.getLogger("gpumon.kubelet")


class Allotment(NamedTuple):
    """A device assigned to a container."""

    pod: str
    namespace: str
    container: str
    device: str


class Kubelet:
    """Call `allotments` once a tick; it never waits."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._look, self._ask = Every(LOOK_SECONDS), Every(ASK_SECONDS)
        self._list: Any = None
        self._channel: Any = None
        self._pending: Any = None
        self._answer: tuple[Allotment, ...] = ()
        self._answered = float("-inf")
        self._trouble: str | None = None

    def allotments(self, now: float) -> tuple[Allotment, ...]:
        """The kubelet's last answer; empty when that is too old."""
        if self._pending is not None and self._pending.done():
            self._take(now)
        if self._pending is None and self._open(now) and self._ask.due(now):
            self._pending = self._list.future(b"", timeout=ANSWER_SECONDS)
        return self._answer if now - self._answered < STALE_SECONDS else ()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = self._list = self._pending = None

    def _open(self, now: float) -> bool:
        if self._list is None and self._look.due(now) and self._socket.exists():
            try:
                self._channel, self._list = connect(self._socket)
            except ImportError:
                self._say(
                    "to learn from the kubelet who holds the GPUs: pip install 'gpumon-train[kubernetes]'"
                )
        return self._list is not None

    def _take(self, now: float) -> None:
        pending, self._pending = self._pending, None
        failure = pending.exception()
        if failure is not None:
            self._say(f"the kubelet does not answer on {self._socket}: {pending.details() or failure}")
            return
        self._answer, self._answered, self._trouble = tuple(read_pods(pending.result())), now, None

    def _say(self, trouble: str) -> None:
        """Logs each problem once."""
        if trouble != self._trouble:
            log.warning("%s", trouble)
        self._trouble = trouble


def connect(socket: Path) -> tuple[Any, Any]:
    """The channel, and the List call on it; nothing is sent yet."""
    import grpc

    channel = grpc.insecure_channel(f"unix:{socket}", [("grpc.max_receive_message_length", MOST_BYTES)])
    return channel, channel.unary_unary(METHOD, response_deserializer=answer_message().FromString)


def answer_message() -> Any:
    """The message class of an answer, in its own pool: others may define messages of the same names."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="gpumon/pods.proto", package="gpumon", syntax="proto3")
    for message, fields in FIELDS.items():
        described = file.message_type.add(name=message)
        for name, number, of in fields:
            field = described.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if of else kinds.LABEL_OPTIONAL
            field.type = kinds.TYPE_MESSAGE if of in FIELDS else kinds.TYPE_STRING
            if of in FIELDS:
                field.type_name = f".gpumon.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("gpumon.Answer"))


def read_pods(answer: Any) -> Iterator[Allotment]:
    for pod in answer.pod_resources:
        for container in pod.containers:
            for device in _gpu_ids(container.devices):
                yield Allotment(pod.name, pod.namespace, container.name, device)


def _gpu_ids(devices: Iterable[Any]) -> Iterator[str]:
    for group in devices:
        for device in group.device_ids:
            if group.resource_name.startswith(PLAIN_NUMBERS_OF) or not device[:1].isdigit():
                yield device
