"""The summary of a study from its Parquet files, on DuckDB or on Spark: one expression, by Ibis.

What the report computes from the database is computed here from `parquet/` alone (docs/collect.md),
so that an engine with many machines can do it where one is not enough. Ibis 12 writes the same
expression as SQL for both; it and Spark come with the extra `spark`.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from steelyard.analysis import export
from steelyard.analysis.errors import MissingError, UsageError
from steelyard.analysis.parts import is_whole
from steelyard.analysis.samples import TOTALS
from steelyard.analysis.spool import no_pattern, quote_path
from steelyard.analysis.stats import CONFIDENCE, student_quantile

if TYPE_CHECKING:
    import ibis

ENGINES = ("duckdb", "spark")
CONNECT_LIMIT_S = 10
JAVA = 17  # the oldest that Spark 4 takes
PARTS = "sample_parts"
NEEDED = ("runs", "attempts", "results", "records", PARTS)
FROM_SAMPLES = "samples."  # before the name of a total that was computed from the samples


@dataclass(frozen=True, slots=True)
class Line:
    """One metric of one condition; sd, low and high (95 %, Student) are None for n = 1."""

    variant: str
    condition: str
    metric: str
    n: int
    mean: float
    sd: float | None
    median: float
    low: float | None
    high: float | None


def summarize(study_dir: Path, engine: str, master: str | None = None) -> list[Line]:
    """Every metric of every condition, completed and valid runs only, sorted.

    `master`: a Spark cluster's address (`spark://HOST:7077`); None: Spark in this process. The totals
    of the sampled counters come as `samples.NAME`, summed over the nodes of a run.
    """
    folder = study_dir / "parquet"
    lacking = [name for name in NEEDED if not (folder / f"{name}.parquet").is_file()]
    if lacking:
        raise MissingError(
            f"{folder / lacking[0]}.parquet is missing: run `steelyard collect` first"
        )
    collected = export.collected(folder)
    cut = [path for path in folder.rglob("*.parquet") if not is_whole(path)]
    if cut:
        raise UsageError(
            f"{cut[0]} is no whole Parquet file: `steelyard collect` writes it anew", str(cut[0])
        )
    check_parts(folder)
    connection = connect(engine, master)
    try:
        found = grouped(values(read_tables(connection, engine, folder)))
        rows = connection.to_pyarrow(found).to_pylist()
    finally:
        connection.disconnect()
    if export.collected(folder) != collected:
        raise UsageError(f"{folder} was written anew while it was read: try again", str(folder))
    return sorted(map(line, rows), key=lambda r: (r.variant, r.condition, r.metric))


def read_tables(connection: Any, engine: str, folder: Path) -> dict[str, Any]:
    """Those that are NEEDED, and `samples` where there are any."""
    root = hadoop_path(folder) if engine == "spark" else no_pattern(folder)
    names = [name for name in NEEDED if name != PARTS]
    tables = {name: connection.read_parquet(f"{root}/{name}.parquet") for name in names}
    if any(folder.glob("samples/*/*.parquet")):
        pattern = f"{root}/samples" if engine == "spark" else f"{root}/samples/*/*.parquet"
        tables["samples"] = connection.read_parquet(pattern)
    return tables


def check_parts(folder: Path) -> None:
    """UsageError unless the files of samples are those that the last collect named."""
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT path FROM read_parquet({quote_path(folder / f'{PARTS}.parquet')})"
        ).fetchall()
    named = {path for (path,) in rows}
    there = {str(p.relative_to(folder / "samples")) for p in folder.glob("samples/*/*.parquet")}
    if named != there:
        other = folder / "samples" / min(named - there or there - named)
        words = "is missing" if named - there else "is not of the last collect"
        raise UsageError(f"{other} {words}: `steelyard collect` mends that", str(other))


def hadoop_path(path: Path) -> str:
    """A path for Spark, which takes these letters for a pattern."""
    return re.sub(r"[*?\[\]{}\\]", r"\\\g<0>", str(path))


def connect(engine: str, master: str | None) -> Any:
    """An Ibis connection; MissingError names the extra, Java, or the master that does not answer."""
    try:
        import ibis

        if engine == "duckdb":
            return ibis.duckdb.connect()
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingError(
            f"{error.name} is missing: pip install 'steelyard[spark]' (Spark also needs Java {JAVA})"
        ) from None
    check_java()
    return ibis.pyspark.connect(session(master))


def check_java() -> None:
    """MissingError where Spark would end with a traceback."""
    remedy = (
        f"apt-get install openjdk-{JAVA}-jre-headless, or set JAVA_HOME to Java {JAVA} or later"
    )
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    if shutil.which(program) is None:
        raise MissingError(f"{program} is missing, and Spark needs it: {remedy}")
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)  # 1.8 was Java 8
    if found is None or int(found[1]) < JAVA:
        first = (said.splitlines() or ["no word"])[0]
        raise MissingError(f"{program} says '{first}', and Spark needs Java {JAVA}: {remedy}")


def session(master: str | None) -> Any:
    """Spark's; MissingError where nothing listens at a standalone master's address."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("steelyard").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    if master is None:  # nothing of a session in this process listens to the outside
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", "8")  # 200 are for a cluster
    else:
        check_master(master)
    return builder.master(master or "local[*]").getOrCreate()


def check_master(master: str) -> None:
    """MissingError where nothing listens: Spark itself says nothing clear for minutes, and hangs."""
    scheme, _, places = master.partition("://")
    if scheme != "spark":
        return
    for place in places.split(","):  # several: one of them leads
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_LIMIT_S).close()
        except (OSError, ValueError) as error:
            last = error
        else:
            return
    raise MissingError(
        f"no Spark master listens at {master} ({last}): expected spark://HOST:PORT of one that "
        "runs; docs/spark.sbatch starts one on the nodes of a job"
    )


def values(tables: Mapping[str, Any]) -> Any:
    """One value per run and metric: variant, condition_label, run_id, metric, value."""
    import ibis

    runs = tables["runs"]
    runs = runs.filter(runs.state == "completed", runs.valid.fill_null(True))
    runs = runs.select("run_id", "attempt", "variant", "condition_label")
    keys = ["run_id", "attempt"]
    names = ["run_id", "variant", "condition_label", "metric", "value"]
    results = tables["results"].join(runs, keys)
    results = results.group_by(["run_id", "variant", "condition_label", "metric"]).aggregate(
        value=results.value.mean()
    )
    attempts = tables["attempts"].join(runs, keys).mutate(metric=ibis.literal("elapsed_s"))
    parts = [results.select(names), attempts.mutate(value=attempts.elapsed_s).select(names)]
    if "samples" in tables:
        parts.append(totals(tables["samples"], runs).select(names))
    found = ibis.union(*parts)
    return found.filter(found.value.notnull() & ~found.value.isnan() & ~found.value.isinf())


def totals(samples: ibis.Table, runs: ibis.Table) -> Any:
    """The last reading of each counter, summed over the nodes of a run; the samples are read once."""
    readings = {name: samples[name].max() for name in TOTALS}
    nodes = samples.group_by(["run_id", "attempt", "node"]).aggregate(**readings)
    summed = {name: nodes[name].sum().cast("float64") for name in TOTALS}
    of_run = nodes.group_by(["run_id", "attempt"]).aggregate(**summed)
    of_run = of_run.rename({FROM_SAMPLES + name: name for name in TOTALS})
    columns = [FROM_SAMPLES + name for name in TOTALS]
    longer = of_run.pivot_longer(columns, names_to="metric", values_to="value")
    return longer.join(runs, ["run_id", "attempt"])


def grouped(found: Any) -> Any:
    """What Student's interval and the report's table need."""
    return found.group_by(["variant", "condition_label", "metric"]).aggregate(
        n=found.value.count(),
        mean=found.value.mean(),
        sd=found.value.std(how="sample"),
        median=found.value.median(),
    )


def line(row: Mapping[str, Any]) -> Line:
    """With the interval; engines differ in what they give as the deviation of one value."""
    n, mean, sd = row["n"], row["mean"], row["sd"]
    if n < 2 or sd is None or math.isnan(sd):
        sd = half = None
    else:
        half = student_quantile((1 + CONFIDENCE) / 2, n - 1) * sd / math.sqrt(n)
    return Line(
        row["variant"],
        row["condition_label"],
        row["metric"],
        n,
        mean,
        sd,
        row["median"],
        None if half is None else mean - half,
        None if half is None else mean + half,
    )
