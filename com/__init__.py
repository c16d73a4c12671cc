"""com: chain-of-memory programs, typed, compiled, replayable.

The names below are all that is supported. They are loaded when first used, so that `import com` costs nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_ROOMS = {
    "CheckError": "library",
    "Diagnostic": "diagnostics",
    "Error": "diagnostics",
    "Memory": "library",
    "Outcome": "runtime.outcome",
    "Plan": "plan",
    "RunError": "runtime.outcome",
    "Schema": "schema",
    "call": "runtime.calls",
    "check": "library",
    "compile": "library",
    "connect": "library",
    "create": "library",
    "execute": "library",
    "read_schema": "library",
}

__all__ = [
    "CheckError",
    "Diagnostic",
    "Error",
    "Memory",
    "Outcome",
    "Plan",
    "RunError",
    "Schema",
    "__version__",
    "call",
    "check",
    "compile",
    "connect",
    "create",
    "execute",
    "read_schema",
]


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"com has no {name}")
    value = getattr(import_module(f"com.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
