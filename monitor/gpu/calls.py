"""NVML calls prepared once and made many times, and what their error codes mean to us.

pynvml's wrappers allocate structures and look the function up on every call. A reading here keeps its
function, arguments and result buffer, all taken from pynvml's loaded library, so a tick is hardly more than
the calls themselves. A reading the card does not support is retried only now and then.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pynvml

RETRY_ABSENT = 300.0
RETRY_FAILING = 10.0
FAILURES_IN_A_ROW = 3
"""Our choices: a reading the card lacks is retried after five minutes (a driver update may add it), one that
failed this often in a row after ten seconds."""

DRIVER_CODES = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
GONE_CODES = frozenset(
    {
        pynvml.NVML_ERROR_GPU_IS_LOST,
        pynvml.NVML_ERROR_RESET_REQUIRED,
        getattr(pynvml, "NVML_ERROR_GPU_NOT_FOUND", 28),
    }
)
ABSENT_CODES = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
        pynvml.NVML_ERROR_NO_PERMISSION,
        getattr(pynvml, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH", 25),
        getattr(pynvml, "NVML_ERROR_DEPRECATED", 26),
    }
)
NO_DATA_CODES = frozenset({pynvml.NVML_ERROR_NOT_FOUND, getattr(pynvml, "NVML_ERROR_NO_DATA", 21)})
UINT_NOT_AVAILABLE = 0xFFFFFFFF
ULONGLONG_NOT_AVAILABLE = 0xFFFFFFFFFFFFFFFF

Values = dict[str, Any]
Convert = Callable[[int], Any]


class NvmlFailure(Exception):
    """An NVML call failed for a reason other than "this reading is not supported"."""

    def __init__(self, code: int) -> None:
        super().__init__(error_text(code))
        self.code = code


class DriverGone(NvmlFailure):
    """The driver or library has gone: nothing works until NVML is initialised again."""


class GpuGone(NvmlFailure):
    """This GPU has fallen off the bus or needs a reset."""


def error_text(code: int) -> str:
    """NVML's text for a code."""
    return str(pynvml.NVMLError(code))


def check(code: int) -> None:
    """Raise when `code` is about the driver or the whole GPU."""
    if code in DRIVER_CODES:
        raise DriverGone(code)
    if code in GONE_CODES:
        raise GpuGone(code)


def require(code: int) -> None:
    """Raise for any code but success."""
    check(code)
    if code != pynvml.NVML_SUCCESS:
        raise NvmlFailure(code)


def find_function(name: str) -> Callable[..., int] | None:
    """A function of the library pynvml has loaded; None if this driver lacks it."""
    found: Callable[..., int] | None = getattr(pynvml.nvmlLib, name, None)
    return found


def no_function(*_arguments: Any) -> int:
    """Placeholder for a function this driver lacks."""
    return int(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)


def bare(structure: Any) -> Any:
    """The same structure without pynvml's way of reading a field, which runs Python code each time."""
    return type(structure.__name__, (ctypes.Structure,), {"_fields_": structure._fields_})


class Reading(Protocol):
    """A question for a GPU. `collect` stores the answer and says whether there was one."""

    code: int
    """The last error code; 0 after an answer."""

    def collect(self, now: float) -> bool: ...

    def ask_again(self) -> None:
        """Forget that the card did not support this."""


class Asked(ABC):
    """What readings share: keeps the target up to date and remembers what is not supported."""

    def __init__(self, function: str, target: Values, keys: Sequence[str]) -> None:
        found = find_function(function)
        self.code = 0 if found else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
        self.function: Callable[..., int] = found or no_function
        self.arguments: tuple[Any, ...] = ()
        self.target = target
        self.keys = tuple(keys)
        self.retry_at = 0.0
        self._failures = 0
        self.blank()

    def collect(self, now: float) -> bool:
        if now < self.retry_at:
            return False
        code = self.function(*self.arguments)
        if code:
            return self.failed(code, now)
        self.code = self._failures = 0
        self.store()
        return True

    @abstractmethod
    def store(self) -> None:
        """Write the call's answer to the target."""

    def blank(self) -> None:
        """Absent means None, never an old value."""
        for key in self.keys:
            self.target[key] = None

    def failed(self, code: int, now: float) -> bool:
        self.blank()
        check(code)
        self.code = code
        self._failures += 1
        if code in ABSENT_CODES:
            self.retry_at = now + RETRY_ABSENT
        elif self._failures >= FAILURES_IN_A_ROW and code not in NO_DATA_CODES:
            self.retry_at = now + RETRY_FAILING
        return False

    def ask_again(self) -> None:
        self.retry_at = 0.0


class Scalar(Asked):
    """One number from one function: `function(handle, *arguments, &out)`."""

    def __init__(
        self,
        function: str,
        handle: Any,
        target: Values,
        key: str,
        convert: Convert,
        *arguments: Any,
        kind: Any = ctypes.c_uint,
    ) -> None:
        super().__init__(function, target, (key,))
        self._out = kind()
        self._key = key
        self._convert = convert
        self.arguments = (handle, *arguments, ctypes.byref(self._out))

    def store(self) -> None:
        self.target[self._key] = self._convert(self._out.value)


class FirstOf:
    """Several ways to ask for the same; the first that answers counts (newer functions come first)."""

    def __init__(self, *choices: Reading) -> None:
        self._choices = choices
        self.code = 0

    def collect(self, now: float) -> bool:
        for choice in self._choices:
            if choice.collect(now):
                self.code = 0
                return True
            self.code = choice.code
        return False

    def ask_again(self) -> None:
        for choice in self._choices:
            choice.ask_again()


def text(function: str, handle: Any, length: int = 96) -> str | None:
    """A string reading, asked once; None if the card does not provide it."""
    found = find_function(function)
    buffer = ctypes.create_string_buffer(length)
    code = found(handle, buffer, length) if found else pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    check(code)
    return buffer.value.decode(errors="replace") if code == pynvml.NVML_SUCCESS else None
