"""The line with which `spark-submit` starts a pipeline: what has to be known before Java starts stands on it.

Everything else is set by `skyband run`, which is what the line runs. Settings that the file takes from the environment
are not on it: `skyband run` resolves them where the driver runs.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Final

from skyband.engines.spark.jvm import JAR
from skyband.errors import InvalidInput
from skyband.pipelines.connectors import JARS, PACKAGES, kafka_connector, needs_kafka
from skyband.pipelines.model import REMOTE, Pipeline
from skyband.pipelines.secrets import references

_MASTER, _MODE, _PYTHON = "spark.master", "spark.submit.deployMode", "spark.pyspark.python"
_OPTIONS: Final = (_MASTER, _MODE, JARS, PACKAGES, _PYTHON)  # which have options of their own


def submit_line(pipeline: Pipeline, *, master: str | None, cluster: bool, archive: str | None) -> str:
    """The line; `cluster`: the driver runs there, too. `archive`: a packed environment that travels with the job."""
    if pipeline.remote is not None:
        raise InvalidInput(
            f"spark-submit starts a session of its own, and this pipeline runs on a server of Spark Connect "
            f"({REMOTE}): `skyband run` starts it from any machine that reaches the server."
        )
    given = dict(pipeline.spark)
    master = master or given.get(_MASTER)
    if cluster and (master is None or master.startswith("local")):
        raise InvalidInput(f"To run the driver on a cluster, name the cluster (--master yarn); got {master or 'none'}.")
    is_kubernetes = str(master).startswith("k8s:")
    python = given.get(_PYTHON, sys.executable if archive is None else "./env/bin/python")
    program = str(Path(__file__).parents[1] / "cli" / "__main__.py")
    file = str(pipeline.file.resolve())
    travels = cluster and not is_kubernetes
    ours = [*(kafka_connector(given).jars if needs_kafka(pipeline, given) else ()), JAR]
    place = "local://" if is_kubernetes else ""  # an image has its files
    jars = ",".join(filter(None, [given.get(JARS), *(f"{place}{jar}" for jar in ours)]))
    options = {
        "--name": f"skyband {pipeline.name}",
        "--master": master,
        "--deploy-mode": "cluster" if cluster else given.get(_MODE),
        "--packages": given.get(PACKAGES),
        "--jars": jars,
        "--archives": f"{archive}#env" if archive else None,
        "--files": file if travels else None,
    }
    parts = [[name, value] for name, value in options.items() if value]
    settings = {_PYTHON: python} | {name: value for name, value in given.items() if name not in _OPTIONS}
    parts += [["--conf", f"{name}={value}"] for name, value in settings.items() if not references(value)]
    run = [f"local://{program}" if is_kubernetes else program, "run", pipeline.file.name if travels else file]
    return " \\\n  ".join(map(shlex.join, [["spark-submit"], *parts, run]))
