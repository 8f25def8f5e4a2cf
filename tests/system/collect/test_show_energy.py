"""`steelyard show` on idle power that administrators configure, and on a job's own GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.analysis.store.energy_shares import IdlePower
from steelyard.wrappers.show import job_data, job_document, job_text

from .test_show import look_up, shared_node, shown, study

__all__ = ["study"]  # a fixture

CONF = "/etc/steelyard/node.conf"
# 2,000 J above 60 W: as test_show.py has it.
AT_60_W = pytest.approx(2000 * 2 / (2 + 3 * 6.18))


def state(study: Any, node: str, energy: dict[str, Any], **fields: Any) -> None:
    """Add a value to the node's record; its samples remain."""
    row = study.row("11")
    samples = next((study.record_dir / "11").glob(f"{node}.*.csv"))
    text = samples.read_text()
    job = {"scheduler": "slurm", "job_id": "11", "exclusive": False}
    whole = {"energy_j": 3200.0, "zones": []} | energy
    study.record(row, node, energy=whole, job=job, **fields).with_suffix(".csv").write_text(text)


def test_the_administrators_idle_power_needs_no_option(
    study: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    node = shared_node(study)
    state(study, node, {"idle_w": 60.0, "idle_source": CONF})
    found = job_data.read_details(look_up(study, "11"), IdlePower())
    assert found.shares[node].low_j == AT_60_W
    assert found.shares[node].idle_low_j == found.shares[node].idle_high_j == 1200
    job_text.print_job(found)
    assert "the node idle: 1.2 kJ (as its administrator says)" in capsys.readouterr().out
    nodes: Any = job_document.as_json(found)["nodes"]
    by_node = {n["node"]: n["energy_share"] for n in nodes}
    assert by_node[node]["idle_source"] == "administrator"


@pytest.mark.parametrize("idle", ["by name", "elsewhere"])
def test_the_option_wins(study: Any, idle: str, capsys: pytest.CaptureFixture[str]) -> None:
    node = shared_node(study)
    state(study, node, {"idle_w": 10.0, "idle_source": CONF})
    power = IdlePower(elsewhere_w=60.0) if idle == "elsewhere" else IdlePower({node: 60.0})
    found = job_data.read_details(look_up(study, "11"), power)
    assert found.shares[node].low_j == AT_60_W
    assert found.shares[node].idle_source == "option"
    job_text.print_job(found)
    assert "administrator" not in capsys.readouterr().out


def test_a_faulty_line_is_told_in_one(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    node = shared_node(study)
    why = f"{CONF}, line 2: expected idle_power WATTS"
    state(study, node, {"idle_w": None}, missing={"energy.idle_w": why})
    found = job_data.read_details(look_up(study, "11"), IdlePower())
    job_text.print_job(found)
    text = capsys.readouterr().out
    assert text.count(f"  idle power of {node}: {why}\n") == 1
    assert "(--idle-power WATTS: closer)" in text


def gpus(energy_j: float | None, of_job: int | None) -> dict[str, Any]:
    zones = [{"name": f"gpu-{n}", "of_job": n < (of_job or 0)} for n in (0, 1)]
    return {
        "gpus": {"of_node": 2, "of_job": of_job, "source": "device"},
        "gpu_energy_j": energy_j,
        "zones": zones,
    }


def test_the_joules_of_the_jobs_own_gpus(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = study.row("11").nodes
    shared_node(study)
    state(study, first, gpus(1234.5, 1))
    reason = "it was not reported which accelerators of the node are the job's"
    state(study, second, gpus(None, None), missing={"energy.gpu_energy_j": reason})
    view = look_up(study, "11")
    text = shown(view, capsys)
    assert f"energy of the job's GPUs on {first}: 1.234 kJ (1 of 2: gpu-0)\n" in text
    assert f"energy of the job's GPUs on {second}: not known: {reason}\n" in text
    nodes: Any = job_document.as_json(job_data.read_details(view))["nodes"]
    assert nodes[0]["gpus"] == {
        "of_node": 2, "of_job": 1, "names": ("gpu-0",), "source": "device",
        "energy_j": 1234.5, "reason": None,
    }  # fmt: skip
    assert nodes[1]["gpus"]["reason"] == reason


def test_records_without_gpus_say_nothing_of_them(
    study: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shared_node(study)
    view = look_up(study, "11")
    assert "GPUs" not in shown(view, capsys)
    nodes: Any = job_document.as_json(job_data.read_details(view))["nodes"]
    assert nodes[0]["gpus"] is None
