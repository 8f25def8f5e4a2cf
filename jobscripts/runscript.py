"""Renders a run's script, runs/RUN_ID/run.sh: variables, the library, the benchmark, `sy_main`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts.parameters import environment_words, shell_text
from steelyard.jobscripts.registry import Benchmark

RUN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def render(
    benchmark: Benchmark,
    parameters: Mapping[str, object],
    *,
    study_dir: Path,
    run_id: str,
    library: str = "steelyard.sh",
    clients: int = 1,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Return the text of run.sh; it needs STUDY_DIR/lib/LIBRARY (`registry.library()`).

    `environment` is set unchanged (STEELYARD_FSTEST, SY_TIME_LIMIT_S). Raises ParameterError for
    invalid parameters, ValueError for an invalid run id, count or variable name, which are faults
    of the caller.
    """
    if not RUN_ID.fullmatch(run_id) or clients < 1:
        raise ValueError(f"run id {run_id!r} with {clients} clients")
    values = benchmark.check_parameters(parameters)
    variables = {
        "SY_STUDY_DIR": str(study_dir.absolute()),
        "SY_RUN_ID": run_id,
        "SY_CLIENTS": str(clients),
        **{
            f"SY_PARAM_{name.upper()}": shell_text(value)
            for name, value in values.items()
            if benchmark.parameters[name].type not in ("environment", "figures")
        },
        **(environment or {}),
    }
    lines = [_export(name, value) for name, value in variables.items()]
    # Lists of NAME=value are not set here: they are for the benchmark's command, not for our shell.
    lines += [
        f"SY_WORDS_{name.upper()}=({environment_words(str(values[name]))})"
        for name, parameter in benchmark.parameters.items()
        if parameter.type == "environment"
    ]
    return "\n".join(
        [
            "#!/bin/bash",
            f"# One run of the benchmark {benchmark.name}, made by steelyard submit.",
            *lines,
            f'. "$SY_STUDY_DIR/lib/{library}" || exit 1',
            "",
            benchmark.template.strip(),
            "",
            "sy_main",
            "",
        ]
    )


def _export(name: str, value: str) -> str:
    if not VARIABLE.fullmatch(name) or "\0" in value:
        raise ValueError(f"{name} = {value!r} cannot be a variable")
    return f"export {name}={shlex.quote(value)}"
