"""How Spark starts in the processes that tests start: as in `local_session(fast_start=True)`.

For some hundred rows an optimising compiler, and code that is written for each query, take most of the time.
"""

from __future__ import annotations

from pathlib import Path

FAST_START = {
    "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "SPARK_CONF_DIR": str(Path(__file__).parent / "spark_conf"),
}
