"""The engines that a run of the tests has."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import servers


@pytest.mark.parametrize("engine", servers.ENGINES)
def test_an_engine_is_tried(engine: str) -> None:
    """CI is not content with fewer engines."""
    reason = servers.missing(engine)
    if reason and not os.environ.get("CI"):
        pytest.skip(f"{engine} is not tested: {reason}")
    assert not reason


def test_com_loads_no_driver() -> None:
    names = "'com.library', 'com.cli', 'com.runtime.memory', 'com.compiler.lower'"
    code = (
        f"import sys, importlib; [importlib.import_module(name) for name in ('com', {names})]; "
        f"sys.exit(str([name for name in {sorted(servers.DRIVERS.values())} if name in sys.modules] or ''))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert not done.stderr.strip()
