"""A kubelet for tests: a real gRPC server on a Unix socket that speaks the pod-resources API, version 1.

Its messages are the published ones, with all fields of a container, including those gpumon does not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MESSAGES = {
    "ListPodResourcesRequest": "",
    "ListPodResourcesResponse": "pod_resources:1:*PodResources",
    "PodResources": "name:1:string namespace:2:string containers:3:*ContainerResources cpu_ids:4:*int64",
    "ContainerResources": (
        "name:1:string devices:2:*ContainerDevices cpu_ids:3:*int64 memory:4:*ContainerMemory "
        "dynamic_resources:5:*DynamicResource"
    ),
    "ContainerMemory": "memory_type:1:string size:2:uint64 topology:3:TopologyInfo",
    "ContainerDevices": "resource_name:1:string device_ids:2:*string topology:3:TopologyInfo",
    "TopologyInfo": "nodes:1:*NUMANode",
    "NUMANode": "ID:1:int64",
    "DynamicResource": "class_name:1:string claim_name:2:string claim_namespace:3:string",
}
SCALARS = {"string": 9, "int64": 3, "uint64": 4}


def _messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="api.proto", package="v1", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            field, number, kind = text.split(":")
            described = message.field.add(name=field, number=int(number), label=3 if kind[0] == "*" else 1)
            plain = kind.removeprefix("*")
            described.type = SCALARS.get(plain, 11)
            if plain not in SCALARS:
                described.type_name = f".v1.{plain}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{name}")) for name in MESSAGES
    }


API = _messages()


class Given(NamedTuple):
    """Devices given to a container."""

    pod: str
    devices: Sequence[str]
    namespace: str = "team-a"
    container: str = "main"
    resource: str = "nvidia.com/gpu"


class FakeKubelet:
    """Serves `given`, which may be changed at any time, until the context is left."""

    def __init__(self, socket: Path, *given: Given) -> None:
        self.socket = socket
        self.given: Sequence[Given] = given
        self.asked = 0
        self._server: Any = None

    def __enter__(self) -> FakeKubelet:
        method = grpc.unary_unary_rpc_method_handler(
            self._list,
            request_deserializer=API["ListPodResourcesRequest"].FromString,
            response_serializer=API["ListPodResourcesResponse"].SerializeToString,
        )
        handler = grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": method})
        self._server = grpc.server(ThreadPoolExecutor(2))
        self._server.add_generic_rpc_handlers((handler,))
        self._server.add_insecure_port(f"unix:{self.socket}")
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()

    def _list(self, _request: Any, _context: Any) -> Any:
        self.asked += 1
        answer = API["ListPodResourcesResponse"]()
        for one in self.given:
            pod = answer.pod_resources.add(name=one.pod, namespace=one.namespace)
            container = pod.containers.add(name=one.container, cpu_ids=[0, 1])
            container.memory.add(memory_type="memory", size=1 << 30)
            container.dynamic_resources.add(class_name="gpu", claim_name="claim")
            devices = container.devices.add(resource_name=one.resource, device_ids=one.devices)
            devices.topology.nodes.add(ID=1)
        return answer
