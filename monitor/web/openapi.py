"""The API described for programs: OpenAPI 3.1, generated from the declared endpoints."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from monitor import __version__
from monitor.model.snapshot import Snapshot
from monitor.web.api import ENDPOINTS
from monitor.web.endpoint import Endpoint, Parameter

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
TEXT = {"type": "string"}
OBJECT = {"type": "object"}


class Plain(NamedTuple):
    """A path that is not an `Endpoint`."""

    path: str
    help: str
    kind: str
    schema: dict[str, Any]
    errors: tuple[int, ...] = ()


PLAIN = (
    Plain("/metrics", "The newest snapshot as Prometheus text or OpenMetrics.", "text/plain", TEXT, (503,)),
    Plain("/-/healthy", "The process lives and answers.", JSON, OBJECT),
    Plain("/-/ready", "The data is fresh.", JSON, OBJECT, (503,)),
    Plain("/api/v1/stream", "Server-sent events, each one a snapshot.", "text/event-stream", TEXT, (503,)),
    Plain("/", "The live page.", "text/html", TEXT),
)


@cache
def description() -> bytes:
    types = [Snapshot, *(endpoint.answer for endpoint in ENDPOINTS)]
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    snapshot = Plain("/api/v1/snapshot", "The newest snapshot.", JSON, schemas[0], (503,))
    paths: dict[str, Any] = {one.path: {"get": _plain(one)} for one in (*PLAIN, snapshot)}
    for endpoint, schema in zip(ENDPOINTS, schemas[1:], strict=True):
        paths[endpoint.path] = {one.lower(): _operation(endpoint, schema) for one in endpoint.methods}
    error = {"type": "object", "properties": {"error": TEXT, "hint": {}}, "required": ["error"]}
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {"title": "gpumon", "version": __version__},
            "paths": paths,
            "components": {"schemas": {**components, "Error": error}},
        }
    )


def _operation(endpoint: Endpoint, schema: dict[str, Any]) -> dict[str, Any]:
    in_path = [name for name in ("run",) if f"{{{name}}}" in endpoint.path]
    parameters = [{"name": name, "in": "path", "required": True, "schema": TEXT} for name in in_path]
    found = _plain(Plain(endpoint.path, endpoint.help, JSON, schema, (400, 503, *endpoint.errors)))
    return {**found, "parameters": [*parameters, *map(_parameter, endpoint.parameters)]}


def _parameter(one: Parameter) -> dict[str, Any]:
    described = {"name": one.name, "in": "query", "description": one.help, "schema": one.schema()}
    return {**described, "required": one.required}


def _plain(one: Plain) -> dict[str, Any]:
    failed = {
        "description": "error",
        "content": {JSON: {"schema": {"$ref": REFERENCE.format(name="Error")}}},
    }
    fine = {"description": one.help, "content": {one.kind: {"schema": one.schema}}}
    answers = {"200": fine} | {str(status): failed for status in one.errors}
    return {"summary": one.help, "responses": answers}
