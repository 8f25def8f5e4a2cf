"""A session of Spark, which queries folders of Parquet files in SQL; the extra `spark`."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steelyard.analysis.base.errors import MissingError

CONNECT_LIMIT_S = 10
JAVA = 17  # the oldest version that Spark 4 supports


@contextlib.contextmanager
def open_session(master: str | None) -> Iterator[Any]:
    """Open a session until the end of the `with` statement.

    `master` is a Spark cluster's address (`spark://HOST:7077`); None: Spark in this process. Raises
    MissingError, which names the missing extra, Java, or the master that does not answer.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingError(
            f"{error.name} is missing: pip install 'steelyard[spark]' (Spark also needs Java {JAVA})"
        ) from None
    check_java()
    spark = start_session(master)
    try:
        yield spark
    finally:
        spark.stop()


def escape_hadoop_path(path: Path) -> str:
    """Escape a path for Spark, which takes these characters as a pattern."""
    return re.sub(r"[*?\[\]{}\\]", r"\\\g<0>", str(path))


def check_java() -> None:
    """Raise MissingError where Spark would end with a traceback."""
    remedy = (
        f"apt-get install openjdk-{JAVA}-jre-headless, or set JAVA_HOME to Java {JAVA} or later"
    )
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    if shutil.which(program) is None:
        raise MissingError(f"{program} is missing, and Spark needs it: {remedy}")
    output = subprocess.run(
        [program, "-version"], capture_output=True, text=True, check=False
    ).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', output)  # 1.8 was Java 8
    if found is None or int(found[1]) < JAVA:
        first = (output.splitlines() or ["no word"])[0]
        raise MissingError(f"{program} says '{first}', and Spark needs Java {JAVA}: {remedy}")


def start_session(master: str | None) -> Any:
    """Start a session; raise MissingError if nothing listens at a standalone master's address."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("steelyard").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    if master is None:  # a session in this process listens only locally
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.sql.shuffle.partitions", "8")  # 200 are for a cluster
    else:
        check_master(master)
    return builder.master(master or "local[*]").getOrCreate()


def check_master(master: str) -> None:
    """Raise MissingError if nothing listens: Spark reports nothing clear for minutes, and hangs."""
    scheme, _, places = master.partition("://")
    if scheme != "spark":
        return
    for address in places.split(","):  # of several masters, one is the leader
        host, _, port = address.rpartition(":")
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
