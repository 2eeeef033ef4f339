"""Example: an expression in a process that was forked after one was evaluated. It hung."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, pyarrow as pa, skyband as sb
rows = pa.table({"a": [1.0, 2.0]})
def best(by):
    return sb.top_k(rows, k=1, by=by, window=sb.tumbling(2))["score"].to_pylist()
def in_a_fork(by):
    if os.fork() == 0:
        try:
            print(best(by), flush=True)
        except sb.EnvironmentProblem as error:
            print(str(error)[:22], flush=True)
        os._exit(0)
    os.wait()
print(best("a"), flush=True)
in_a_fork("a * 2")
print(best("a * 3"), flush=True)
in_a_fork("a * 2")
in_a_fork("a")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_an_expression_after_a_fork_is_evaluated_or_refused() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["[2.0]", "[4.0]", "[6.0]", "This process is a fork", "[2.0]"]
