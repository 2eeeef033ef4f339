"""Line 2: a pipeline of all five problems and every sink, whose processes are killed, one or two at once.

A seed is one pipeline. It is killed in several lives, each time after a chosen write of a chosen stream, and then comes
to its end; its sinks must have what the embedded engine answers. A life that only loses workers goes on: so one that is
to end has often lost some before.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torture import market
from torture.campaign import Result
from torture.lives import STREAMS, WRITES, Life
from torture.worker_daemon import PAGES

LIVES = 4  # that end by force, and then one that does not
FATAL = (("all",), ("java",), ("driver",), ("worker", "java"), ("driver", "worker"), ("driver", "java"))
SURVIVED = (("worker",), ("worker", "worker"), ("daemon",))
MOST_START_S = 20.0  # after so long a life reads rows


@dataclass(frozen=True)
class Blow:
    """When to kill, and what."""

    victims: tuple[str, ...]
    stream: str
    what: str  # which write to wait for; "start": none
    count: int
    delay_s: float

    def __str__(self) -> str:
        when = (
            "while it starts" if self.what == "start" else f"after write {self.count} of {self.what} of {self.stream}"
        )
        return f"{' and '.join(self.victims)} {when} and {self.delay_s:.3f} s"


def plan(seed: int) -> Iterator[list[Blow]]:
    """For each life what strikes it; the last blow ends it."""
    chance = random.Random(seed)
    for life in range(LIVES):
        blows = []
        if (seed + life) % 2:
            blows.append(_blow(chance, SURVIVED[chance.randrange(len(SURVIVED))]))
        victims = FATAL[(seed * LIVES + life) % len(FATAL)]
        if life == 0:  # between the commit of a table and Spark's
            blows.append(Blow(victims if "worker" not in victims else ("all",), "trades_1", "sink", 2, 0.0))
        elif seed % 4 == 3 and life == 1:
            blows = [Blow(("all",), "trades_1", "start", 0, chance.uniform(0, MOST_START_S))]
        else:
            blows.append(_blow(chance, victims))
        yield blows


def _blow(chance: random.Random, victims: tuple[str, ...]) -> Blow:
    what = chance.choice(WRITES)
    many = 3 if what == "state" else 1  # a micro-batch writes several
    delay = chance.choice((0.0, chance.expovariate(20), chance.expovariate(4)))
    return Blow(victims, chance.choice(STREAMS), what, chance.randint(1, 2 * many), delay)


def run(first: int, count: int) -> Result:
    result = Result()
    with tempfile.TemporaryDirectory(prefix="torture-") as name, market.servers(Path(name)) as servers:
        for seed in range(first, first + count):
            folder = Path(tempfile.mkdtemp(prefix=f"torture-{seed}-"))
            wrong = _one(folder, seed, servers, result)
            result.note(seed, "came to its end", wrong and f"{wrong} (left in {folder})")
            if wrong is None:
                shutil.rmtree(folder)
    return result


def _one(folder: Path, seed: int, servers: market.Servers, result: Result) -> str | None:
    """What went wrong."""
    file = market.write(folder, seed, servers)
    more = servers.environment() | {PAGES: "cut" if seed % 2 else "whole"}
    struck: list[str] = []
    orphans = []
    for blows in [*plan(seed), []]:
        life, fatal = Life(file, **more), None
        try:
            for blow in blows:
                if not _struck(life, blow):
                    break
                struck.append(str(blow))
                result.tried[f"kills of {' and '.join(blow.victims)}"] += 1
                fatal = blow if blow.victims in FATAL else None
            wrong = _ending(life, () if fatal is None else fatal.victims)
        finally:
            if fatal is None or "driver" not in fatal.victims:
                life.end()
            else:
                orphans.append(life)  # its Java may go on for a moment, beside the next life
        if wrong or life.process.returncode == 0:
            break
    for life in orphans:
        if not life.wait_for_java():
            wrong = wrong or "a Java outlived its driver"
            life.end()
    wrong = wrong or "; ".join(market.differences(folder, seed, servers))
    return f"{wrong}; after kills of {'; '.join(struck)}" if wrong else None


def _struck(life: Life, blow: Blow) -> bool:
    """False: the life came to its end before."""
    if blow.what != "start" and not life.wait_for_writes(blow.stream, blow.what, blow.count):
        return False
    time.sleep(blow.delay_s)
    there = life.processes()
    victims: list[int] = []
    for kind in blow.victims:
        victims += [one for several in there.values() for one in several] if kind == "all" else there[kind][-1:]
        there[kind] = there.get(kind, [])[:-1]
    life.kill(*victims)
    return bool(victims)


def _ending(life: Life, fatal: tuple[str, ...]) -> str | None:
    """What is wrong about how a life ended."""
    code = life.wait()
    if fatal == ():
        return None if code == 0 else f"a run that nobody ended did, with code {code}: {life.said()[-2000:]}"
    if "all" in fatal or "driver" in fatal or "Spark's Java has ended" in " ".join(life.said().split()):
        return None
    return f"a run that lost its Java says: {life.said()[-2000:]}"
