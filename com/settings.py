"""Where com finds what is not said on the command line: COM_* variables, then `com.toml`, found upward."""

from __future__ import annotations

import os
from pathlib import Path

from com.diagnostics import BadSettings, CannotRead, Error

KEYS = ("memory", "schema", "history", "zone", "calls")
"""What com.toml may say. `memory` is a URL, `schema` a file (both seen from com.toml's folder), `history` says
whether row images are kept, `zone` the time zone of $now and $today, `calls` the Python file (or module) that registers
the functions which programs may call."""


def setting(key: str, given: str | None = None) -> str | None:
    """The value of a key: as given, else from the variable COM_KEY, else from com.toml."""
    return given or os.environ.get(f"COM_{key.upper()}") or _file_settings().get(key)


def _file_settings() -> dict[str, str]:
    here = Path.cwd()
    file = next((f for folder in (here, *here.parents) if (f := folder / "com.toml").is_file()), None)
    if file is None:
        return {}
    import tomllib  # only where there is a file

    name = os.path.relpath(file)
    try:
        read = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise Error(CannotRead(name, error.strerror or "no reason given")) from None
    except ValueError as error:
        raise Error(BadSettings(name, str(error), ", ".join(KEYS))) from None
    unknown = [key for key in read if key not in KEYS]
    if unknown:
        raise Error(BadSettings(name, f"it has no key {unknown[0]}", ", ".join(KEYS)))
    return {key: _text(file, name, key, value) for key, value in read.items()}


def _text(file: Path, name: str, key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise Error(BadSettings(name, f"{key} is no text", ", ".join(KEYS)))
    if key == "schema" or (key == "calls" and value.endswith(".py")):
        return os.path.relpath(file.parent / value)
    relative = value.removeprefix("sqlite:///")
    if relative != value and relative and not Path(relative).is_absolute() and not relative.startswith(":"):
        return "sqlite:///" + os.path.relpath(file.parent / relative)
    return value
