"""An endpoint of the JSON API: its path, parameters and response type. Parameters are parsed from this
declaration, and the OpenAPI description is generated from it."""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from monitor.model.errors import UserError
from monitor.model.snapshot import encode
from monitor.store.schema import StoreError
from monitor.web.service import Service

Answer = Callable[[Request], Awaitable[Response]]
Values = dict[str, Any]
"""Parsed parameters by name; None for one that was not given and has no default."""
Question = Callable[[Request, Service, Values], Any]
MAX_TEXT = 512
NUMBERS = {
    "integer": re.compile(r"-?[0-9]{1,20}"),
    "number": re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,3})?"),
}
NAMES = {"integer": "a whole number", "number": "a number"}


class BadRequest(Exception):
    """A request that cannot be answered: status and message of the response."""

    def __init__(self, sentence: str, status: int = 400) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query string."""

    name: str
    help: str
    kind: Literal["integer", "number", "string"] = "string"
    default: float | None = None
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    required: bool = False

    def read(self, text: str | None) -> Any:
        """Raises `BadRequest` naming what is wrong."""
        if self.required and not text:
            raise BadRequest(f"{self.name} is missing: {self.help}")
        if text is None:
            return self.default
        if len(text) > MAX_TEXT:
            raise BadRequest(f"{self.name} is longer than {MAX_TEXT} characters")
        return self._text(text) if self.kind == "string" else self._number(text)

    def _text(self, text: str) -> str | None:
        if self.choices and text not in self.choices:
            raise BadRequest(f"{self.name}: {text!r} is not one of {', '.join(self.choices)}")
        return text or None

    def _number(self, text: str) -> float:
        if not NUMBERS[self.kind].fullmatch(text):
            raise BadRequest(f"{self.name}: {text!r} is not {NAMES[self.kind]}")
        value = int(text) if self.kind == "integer" else float(text)
        if not self.low <= value <= self.high:
            raise BadRequest(f"{self.name}: {text} is not between {self.low:g} and {self.high:g}")
        return value

    def schema(self) -> dict[str, Any]:
        if self.kind == "string":
            choices = {"enum": list(self.choices)} if self.choices else {"maxLength": MAX_TEXT}
            return {"type": "string", "minLength": int(self.required), **choices}
        found: dict[str, Any] = {"type": self.kind, "minimum": self.low, "maximum": self.high}
        return found if self.default is None else {**found, "default": self.default}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path of the API. Its handler runs in a thread, so a slow one never delays `/metrics`."""

    path: str
    question: Question
    answer: Any
    """The type of its response."""
    parameters: tuple[Parameter, ...] = ()
    methods: tuple[str, ...] = ("GET",)
    errors: tuple[int, ...] = ()

    @property
    def help(self) -> str:
        return " ".join((self.question.__doc__ or "").split())

    def values(self, request: Request) -> Values:
        given = request.query_params
        return {one.name: one.read(given.get(one.name)) for one in self.parameters}

    def respond(self) -> Answer:
        """The handler for the web server: JSON, or a clear sentence if there is no answer."""

        @functools.wraps(self.question)
        async def answer(request: Request) -> Response:
            try:
                found = await run_in_threadpool(self._ask, request)
            except BadRequest as error:
                return JSONResponse({"error": str(error)}, error.status)
            except UserError as error:
                return JSONResponse({"error": error.sentence, "hint": error.hint}, 400)
            except StoreError as error:
                return JSONResponse({"error": str(error)}, 503)
            return Response(found, media_type="application/json", headers={"cache-control": "no-store"})

        return answer

    def _ask(self, request: Request) -> bytes:
        return encode(self.question(request, request.app.state.service, self.values(request)))
