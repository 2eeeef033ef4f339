"""A Kafka broker for tests: one process that is broker and controller, from Maven's jars, on loopback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.maven import jars
from servers.ports import free_port, wait_for_port

from skyband.engines.spark.java import ensure_java

VERSION = "3.9.1"
_CONFIGURATION = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={folder}/log
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_MEMORY = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The address of a broker that runs until the end of the block."""
    path = os.pathsep.join(map(str, jars(f"org.apache.kafka:kafka_2.13:{VERSION}")))
    port, controller = free_port(), free_port()
    configuration = folder / "server.properties"
    configuration.write_text(_CONFIGURATION.format(port=port, controller=controller, folder=folder))
    java = [str(ensure_java() / "bin" / "java"), *_MEMORY, "-cp", path]
    with (folder / "kafka.log").open("wb") as log:
        storage = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(configuration)]
        subprocess.run(storage, stdout=log, stderr=log, check=True)
        process = subprocess.Popen([*java, "kafka.Kafka", str(configuration)], stdout=log, stderr=log)
        try:
            wait_for_port(port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()
