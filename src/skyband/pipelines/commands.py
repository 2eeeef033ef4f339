"""The commands for pipelines: `skyband run`, `submit`, `check`, `state`, `init`, `doctor`.

They import their modules when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.markup import escape

from skyband.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from skyband.dialect.statement import Statement
    from skyband.pipelines.metrics import Metrics
    from skyband.pipelines.model import Address, Pipeline
    from skyband.pipelines.progress import View
    from skyband.pipelines.served import ServedPipeline
    from skyband.pipelines.signals import Interrupt

File = Annotated[Path, typer.Argument(help="The pipeline: a TOML file.", show_default=False)]


class Log(StrEnum):
    text = "text"
    json = "json"


def run(
    file: File,
    available_now: Annotated[
        bool,
        typer.Option("--available-now", help="Process the available input and stop, whatever trigger the file has."),
    ] = False,
    log: Annotated[
        Log, typer.Option(help="Print a line for each query, or a JSON object for each of its micro-batches.")
    ] = Log.text,
    serve: Annotated[bool, typer.Option("--serve", help="Serve the latest answers over HTTP while it runs.")] = False,
    ui: Annotated[bool, typer.Option("--ui", help="Serve the answers, and open the console in the browser.")] = False,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where to serve. Any host but 127.0.0.1 requires a token. [default: 127.0.0.1:8765]",
            show_default=False,
        ),
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=1, max=65_535, help="Serve metrics to Prometheus on this port.", show_default=False),
    ] = None,
    metrics_address: Annotated[str, typer.Option(help="The address for the metrics.")] = "127.0.0.1",
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the messages of Spark and the stack traces of Java.")
    ] = False,
) -> None:
    """Run a pipeline on Spark until Ctrl-C. The next run continues where it stopped."""
    from skyband.pipelines.locking import only_run_of
    from skyband.pipelines.progress import open_view, telling
    from skyband.pipelines.signals import interrupts

    with interrupts() as interrupted, ExitStack() as stack:
        with telling() as tell:
            tell(f"Checking {file.name}, then starting Spark …")
            pipeline, statements, where = _checked(file, address, asked=serve or ui)
            stack.enter_context(only_run_of(pipeline))
            stack.enter_context(_reported(debug))
            metrics = _metrics(metrics_port, metrics_address, where)
            served = stack.enter_context(_served(pipeline, where, metrics, tell, open_page=ui))
            spark = _started(pipeline, tell, debug=debug)
            stack.callback(spark.stop)
            interrupted.take_over()
        view = stack.enter_context(open_view(Console(), as_json=log is Log.json))
        _follow(spark, pipeline, statements, view, interrupted, metrics, served, available_now=available_now)
    if interrupted:
        said = "Stopped before it read anything." if interrupted.came_early else _CONTINUES
        Console(stderr=True).print(said, highlight=False)


_CONTINUES: Final = "Stopped. The next `skyband run` continues from here."


def _checked(
    file: Path, address: str | None, *, asked: bool
) -> tuple[Pipeline, Mapping[str, Statement], Address | None]:
    """The pipeline, right as far as that can be known before Spark starts, its statements, and where it is served."""
    from skyband.pipelines.checking import check_file
    from skyband.pipelines.doctor import refuse_dead_services, refuse_missing_libraries

    pipeline, report = check_file(file)
    where = _where_to_serve(pipeline, address, asked=asked)
    refuse_missing_libraries(pipeline)
    refuse_dead_services(pipeline)
    return pipeline, report.statements, where


def _metrics(port: int | None, address: str, where: Address | None) -> Metrics | None:
    """Metrics, if somebody is to see them."""
    from skyband.pipelines.metrics import Metrics

    metrics = Metrics() if port or where else None
    if metrics and port:
        metrics.serve(port, address)
    return metrics


def _started(pipeline: Pipeline, tell: Callable[[str], None], *, debug: bool) -> SparkSession:
    from skyband.engines.spark.failures import traces_to
    from skyband.pipelines.session import start_session

    log_file = None if debug else _log_file(pipeline)
    spark = start_session(pipeline, log_file=log_file, tell=tell)
    if log_file is not None and pipeline.remote is None:
        traces_to(log_file, spark)
    return spark


def _follow(
    spark: SparkSession,
    pipeline: Pipeline,
    statements: Mapping[str, Statement],
    view: View,
    interrupted: Interrupt,
    metrics: Metrics | None,
    served: ServedPipeline | None,
    *,
    available_now: bool,
) -> None:
    """Run it to its end."""
    from skyband.pipelines.model import AVAILABLE_NOW
    from skyband.pipelines.running import Running

    running = Running(spark, pipeline, view.show, AVAILABLE_NOW if available_now else None, served, statements)
    running.start()
    try:
        for figures in running.follow(interrupted):
            view.news(figures)
            if metrics:
                metrics.take(figures)
    finally:
        running.stop()


def _where_to_serve(pipeline: Pipeline, address: str | None, *, asked: bool) -> Address | None:
    """None: nowhere."""
    from skyband.pipelines.model import HERE, Address

    if address is None:
        return pipeline.serve or (HERE if asked else None)
    if not asked and pipeline.serve is None:
        raise InvalidInput("--address sets where answers are served: add --serve or --ui.")
    found = Address.read(address)
    if found is None:
        raise InvalidInput(f"--address takes a host and a port, such as 127.0.0.1:8765; got {address!r}.")
    return found


@contextmanager
def _served(
    pipeline: Pipeline, where: Address | None, metrics: Metrics | None, tell: Callable[[str], None], *, open_page: bool
) -> Iterator[ServedPipeline | None]:
    """What readers are served, until the end of the block; its address is printed once, with the token."""
    if where is None or metrics is None:
        yield None
        return
    from skyband.serving import require

    require()
    from skyband.pipelines.served import ServedPipeline
    from skyband.serving.server import Server

    served = ServedPipeline(pipeline, metrics.text)
    with Server(served.catalog, host=where.host, port=where.port) as server:
        tell(f"Serving at {server.page}")
        if open_page:
            server.open()
        yield served


def check(file: File) -> None:
    """Check a pipeline file without running it: its keys, its statements and their columns."""
    from skyband.pipelines.checking import check_file

    _, report = check_file(file)
    console = Console()
    for line in report.queries:
        console.print(f"[green]✓[/] {escape(line)}", soft_wrap=True, highlight=False)
    for note in report.notes:
        console.print(f"[yellow]•[/] {escape(note)}", soft_wrap=True, highlight=False)


def state(
    file: File,
    query: Annotated[str | None, typer.Option(help="Show the rows that this query keeps.", show_default=False)] = None,
    rows: Annotated[int, typer.Option(min=1, help="How many rows to show.")] = 20,
) -> None:
    """Print how many rows each query of a pipeline keeps, as of its last micro-batch. The pipeline may be running."""
    from rich.table import Table

    from skyband.pipelines.held import held_by, rows_held_by

    def look(spark: SparkSession, pipeline: Pipeline) -> pa.Table:
        return held_by(spark, pipeline) if query is None else rows_held_by(spark, pipeline, query, rows)

    found = looked_up(file, query, look)
    shown = Table(*found.column_names, box=None)
    for line in found.to_pylist():
        shown.add_row(*(str(value) for value in line.values()))
    Console().print(shown)


def looked_up(file: Path, query: str | None, look: Callable[[SparkSession, Pipeline], pa.Table]) -> pa.Table:
    """What is found in the checkpoints of a pipeline, which may be running."""
    from skyband.pipelines.file import load
    from skyband.pipelines.session import start_session

    pipeline = load(file)
    if query is not None and query not in pipeline.queries:
        raise InvalidInput(f"There is no query {query!r}. Queries: {', '.join(pipeline.queries)}.")
    with _reported(debug=False):
        spark = start_session(pipeline, log_file=_log_file(pipeline))
        try:
            return look(spark, pipeline)
        finally:
            spark.stop()


def submit(
    file: File,
    master: Annotated[
        str | None,
        typer.Option(help="The cluster: yarn, spark://… or k8s://…. [default: the file's]", show_default=False),
    ] = None,
    cluster: Annotated[bool, typer.Option("--cluster", help="Run the driver on the cluster, too.")] = False,
    archive: Annotated[
        str | None,
        typer.Option(help="An environment packed by venv-pack, which travels with the job.", show_default=False),
    ] = None,
) -> None:
    """Print the line with which spark-submit runs a pipeline on a cluster. Nothing is started."""
    from skyband.pipelines.checking import check_file
    from skyband.pipelines.submitting import submit_line

    pipeline, _ = check_file(file)
    typer.echo(submit_line(pipeline, master=master, cluster=cluster, archive=archive))
    if names := pipeline.secret_names():
        typer.echo(f"# The environment of the driver must have {', '.join(sorted(names))}.", err=True)


def init(file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("pipeline.toml")) -> None:
    """Write a first pipeline file with comments, ready to run."""
    if file.exists():
        raise InvalidInput(f"{file} exists already. Name another file.")
    starter = Path(__file__).with_name("starter.toml").read_text(encoding="utf-8")
    file.write_text(starter.format(name=file.stem), encoding="utf-8")
    typer.echo(f"Written to {file}. Now: skyband run {file}")


def doctor(
    file: Annotated[
        Path | None,
        typer.Argument(help="A pipeline file. The check then includes its sources and sinks.", show_default=False),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=1, max=65_535, help="Check that this port is free.", show_default=False)
    ] = None,
    start: Annotated[bool, typer.Option(help="Also start Spark and run a small job.")] = True,
) -> None:
    """Find problems with Java, Spark, ports and disk on this machine, and explain how to fix them."""
    from skyband.pipelines.doctor import examine
    from skyband.pipelines.file import load

    console = Console()
    healthy = True
    for finding in examine(None if file is None else load(file), metrics_port=metrics_port, start=start):
        mark = "[green]✓[/]" if finding.fix is None else "[bold red]✗[/]"
        console.print(f"{mark} {escape(finding.what)}", soft_wrap=True, highlight=False)
        if finding.fix is not None:
            healthy = False
            console.print(f"  {escape(finding.fix)}", soft_wrap=True, highlight=False)
    if not healthy:
        raise typer.Exit(1)


@contextmanager
def _reported(debug: bool) -> Iterator[None]:
    """Errors of Spark's as words; with --debug, as they are."""
    try:
        yield
    except Exception as error:
        if debug:
            raise
        from skyband.engines.spark.failures import readable

        raise readable(error) from error


def _log_file(pipeline: Pipeline) -> Path | None:
    """Where Spark writes its messages: beside the checkpoint, if that is on this machine."""
    folder = pipeline.on_this_machine(pipeline.checkpoint)
    if folder is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "spark.log"
