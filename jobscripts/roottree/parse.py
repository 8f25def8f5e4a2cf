"""Reads the results of the reader of ROOT trees, one set of figures per iteration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts.hep import client_output
from steelyard.jobscripts.registry import Result


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return times in s, rates and the compression ratio.

    Without `verify`, figures that need the file's note are omitted.
    """
    start, iterations, _ = client_output.read(folder, client, "roottree", parameters)
    known, results = start["input"], []
    for number, line in enumerate(iterations, start=1):
        (answer,) = line["clients"]
        client_output.verify(answer["found"], start["expected"], "the reader")
        results += client_output.common(f"out.{client}", number, line)
        seconds = answer["end_s"] - answer["begin_s"]
        results.append(Result("wait_share", answer["wait_s"] / seconds, "1", number))
        if known is not None:
            rate, ratio = known["raw_bytes"] / seconds, known["raw_bytes"] / known["bytes"]
            results.append(Result("raw_bytes_per_s", rate, "bytes_per_s", number))
            results.append(Result("compression_ratio", ratio, "1", number))
    return results
