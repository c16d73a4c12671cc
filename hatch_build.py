"""The build step: the grammar's tables, so that nobody waits for them at run time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GrammarTables(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # the parser makes them when it is first used
        sys.path.insert(0, self.root)
        from com.compiler.parse import build_tables

        build_tables(Path(self.root, "com", "grammar.tables"))
