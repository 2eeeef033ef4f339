"""Tries an installed Skyband, in an environment with nothing else: `make wheel` runs it. The argument is the extra."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

import skyband as sb


def main(extra: str) -> None:
    assert Path(sb.__file__).is_relative_to(sys.prefix), f"the wheel is tried, not {sb.__file__}"
    trades = pa.table({"minute": [0, 1, 3], "price": [10, 20, 5], "volume": [9, 1, 2]})
    best = sb.top_k(trades, k=1, by="price * volume", window=sb.tumbling(2, on="minute"))
    assert best["score"].to_pylist() == [90, 10]
    command = Path(sys.executable).with_name("skyband")
    subprocess.run([command, "version"], check=True, stdout=subprocess.DEVNULL)
    if extra:
        subprocess.run([command, "doctor", "--no-start"], check=True, stdout=subprocess.DEVNULL)
        assert find_spec("grpc_status") is not None, "Spark Connect"
    else:
        said = subprocess.run([sys.executable, "-c", "import skyband.engines.spark"], capture_output=True, text=True)
        assert "EnvironmentProblem: PySpark is not installed" in said.stderr
        assert "pip install 'skyband[spark]'" in said.stderr
    print(f"skyband{extra} {sb.__version__} works")


if __name__ == "__main__":
    main(*sys.argv[1:])
