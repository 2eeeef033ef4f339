"""Build the jar from the Java source beside it: `make jar`. The same source gives the same bytes.

Nothing in the jar depends on when or where it was built: entries are in the order of their names, have one date, and
are not compressed. Only another major version of javac may write other bytes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import pyspark

from skyband.engines.spark.jvm import JAR
from skyband.errors import EnvironmentProblem

RELEASE: Final = "17"  # the oldest Java that Spark runs on
_DATE: Final = (2026, 1, 1, 0, 0, 0)


def build(jar: Path = JAR) -> None:
    """Write the jar."""
    javac = shutil.which("javac")
    if javac is None:
        raise EnvironmentProblem(f"There is no javac on the PATH. Install a JDK, {RELEASE} or later.")
    sources = sorted(Path(__file__).parent.rglob("*.java"))
    against = Path(pyspark.__file__).parent / "jars" / "*"
    with tempfile.TemporaryDirectory(prefix="skyband-jar-") as name:
        command = [javac, "--release", RELEASE, "-g:none", "-encoding", "UTF-8", "-cp", str(against), "-d", name]
        # Records and lambdas have no warning to give; what Spark's own classes lack is none of our business.
        subprocess.run([*command, "-nowarn", *map(str, sources)], check=True, env=os.environ | {"LC_ALL": "C"})
        with zipfile.ZipFile(jar, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(Path(name).rglob("*.class")):
                entry = zipfile.ZipInfo(path.relative_to(name).as_posix(), _DATE)
                entry.create_system, entry.external_attr = 3, 0o644 << 16
                archive.writestr(entry, path.read_bytes())


if __name__ == "__main__":
    build()
