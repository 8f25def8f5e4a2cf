"""Settings of [job], executed for real: warm-up, time-out, retries, idle time, binding; and tags."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

ROOT = Path(__file__).parents[3]

COUNT = 'echo x >>"$SY_STUDY_DIR/count"; mapfile -t n <"$SY_STUDY_DIR/count"; n=${#n[@]}\n'


def test_warm_ups_run_before_and_are_kept_apart(study: Study) -> None:
    study.body(COUNT + 'ls; echo "execution $n"; touch left-over')
    assert study.run(SY_WARM_UP="2").returncode == 0
    attempt = study.attempt()
    assert (attempt / "out.0").read_text() == "execution 3\n"
    assert (attempt / "warm-up.1/out.0").read_text() == "execution 1\n"
    assert (attempt / "warm-up.2/out.0").read_text() == "execution 2\n"
    assert study.result()["state"] == "completed"


def test_a_warm_up_is_not_in_the_measured_time(study: Study) -> None:
    study.body(COUNT + '((n > 1)) || { sleep 0.1; date +%s%6N >"$SY_STUDY_DIR/warm"; }')
    assert study.run(SY_WARM_UP="1").returncode == 0
    assert int((study.folder / "warm").read_text()) <= study.clock()[0][0]
    assert study.elapsed_is_the_longest_clients()


def test_a_failed_warm_up_fails_the_run_with_its_words(study: Study) -> None:
    study.body("echo no such file >&2; return 7")
    assert study.run(SY_WARM_UP="1").returncode == 1
    reason = study.result()["reason"]
    assert "warm-up 1 failed (exit code 7): no such file" in reason


def test_nothing_runs_before_and_after_and_the_times_are_kept(study: Study) -> None:
    """Once, also where the run is begun again; what fails waits for nothing."""
    study.body(COUNT + "((n > 1))")
    assert study.run(SY_IDLE_S="1", SY_RETRIES="1").returncode == 0
    lines = (study.attempt() / "spans.run").read_text().splitlines()
    before, after = (json.loads(line) for line in lines)
    assert (before["span"], after["span"]) == ("idle_before", "idle_after")
    for span in (before, after):
        assert span["end_unix_s"] - span["begin_unix_s"] > 0.9
    found = study.result()
    assert before["end_unix_s"] <= found["start_unix_s"]
    assert found["end_unix_s"] <= after["begin_unix_s"]
    study.body("false")
    assert study.run(SY_IDLE_S="1").returncode == 1
    lines = (study.attempt("local.2") / "spans.run").read_text().splitlines()
    assert [json.loads(line)["span"] for line in lines] == ["idle_before"]


def test_a_run_that_is_stopped_while_idle_is_no_run(study: Study) -> None:
    study.body("true")
    run = study.start(SY_IDLE_S="600")
    wait_for("it has begun", lambda: (study.attempt() / "result.json").exists())
    run.terminate()
    run.communicate(timeout=60)
    assert run.returncode == 143
    assert study.result()["state"] == "failed"
    assert not (study.attempt() / "spans.run").exists()


def test_a_run_that_takes_too_long_is_stopped_and_says_so(study: Study) -> None:
    study.body("echo begun; sleep 60; echo never")
    assert study.run(SY_TIME_OUT_S="1.5").returncode == 1
    found = study.result()
    assert (found["state"], found["reason"]) == ("timeout", "stopped after its time-out of 1.5 s")
    assert found["exit_codes"] == [143]
    assert (study.attempt() / "out.0").read_text() == "begun\n"


def test_a_run_within_its_time_leaves_no_clock_behind(study: Study) -> None:
    study.body("true", clients=2)
    done = study.run(SY_TIME_OUT_S="30")  # would wait for the clock, which holds stderr
    assert (done.returncode, done.stderr) == (0, "")
    assert study.result()["state"] == "completed"


def test_retries_keep_what_failed_and_are_told(study: Study) -> None:
    study.body(COUNT + 'echo "execution $n"; ((n == 3)) || { echo bad luck >&2; return 9; }')
    done = study.run(SY_RETRIES="5")
    assert done.returncode == 0
    assert "try 1 failed: client 0" in done.stderr
    found = study.result()
    assert found["state"] == "completed"
    assert [entry["state"] for entry in found["tries"]] == ["failed", "failed"]
    assert found["tries"][1]["reason"].endswith("exited with 9: bad luck")
    attempt = study.attempt()
    assert (attempt / "out.0").read_text() == "execution 3\n"
    assert (attempt / "try.2/out.0").read_text() == "execution 2\n"
    assert json.loads((attempt / "try.1/result.json").read_text())["state"] == "failed"


def test_retries_end(study: Study) -> None:
    study.body("return 9")
    assert study.run(SY_RETRIES="1").returncode == 1
    found = study.result()
    assert (found["state"], len(found["tries"])) == ("failed", 1)
    assert not (study.attempt() / "try.2").exists()


def test_a_time_out_may_be_tried_again(study: Study) -> None:
    study.body(COUNT + "((n > 1)) || sleep 60")
    assert study.run(SY_RETRIES="1", SY_TIME_OUT_S="1.5").returncode == 0
    assert study.result()["tries"][0]["state"] == "timeout"


def test_tags_of_a_run(study: Study) -> None:
    study.body("sy_tag mount.type ext4; sy_tag odd $'a\\nb=c'", clients=2)
    assert study.run().returncode == 0
    for client in (0, 1):
        text = (study.attempt() / f"tags.{client}").read_text()
        assert text == "mount.type=ext4\nodd=a b=c\n"


def test_the_environment_names_program_and_libraries_by_checksum(study: Study) -> None:
    study.body("sy_environment ls no-such-program")
    assert study.run().returncode == 0
    lines = (study.attempt() / "environment.0").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    program = Path(str(shutil.which("ls"))).resolve()
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    assert {"kind": "program", "path": str(program), "sha256": digest} in entries
    assert any(entry["kind"] == "library" and "libc.so" in entry["path"] for entry in entries)


def test_without_a_scheduler_the_only_node_is_this_one(study: Study) -> None:
    study.body(
        'sy_nodes; sy_on_node "$HOSTNAME" sh -c "exit 3"; echo $?; sy_node_address localhost'
    )
    assert study.run().returncode == 0
    node, code, address = (study.attempt() / "out.0").read_text().splitlines()
    assert (node, code) == (Path("/proc/sys/kernel/hostname").read_text().strip(), "3")
    assert address in ("127.0.0.1", "::1")


def test_one_rank_starts_no_daemon_of_open_mpi(study: Study) -> None:
    study.body(
        'OMPI_x=1; sy_without_scheduler; sy_mpi_run 1 mpirun env; printf "after:%s" "${!OMPI_@}"'
    )
    assert study.run().returncode == 0
    found = (study.attempt() / "out.0").read_text()
    assert "OMPI_MCA_ess_singleton_isolated=1\n" in found
    # Nor does it share a folder with others that end while it starts.
    assert (
        f"OMPI_MCA_orte_tmpdir_base={study.scratch}/steelyard.{study.run_folder.name}.0." in found
    )
    assert found.endswith("after:")


def test_what_sbatch_asked_of_plugins_goes_to_other_nodes_too(study: Study) -> None:
    """srun reads it from there (spank(8)): without it mpirun's daemons had no network condition."""
    option = "SLURM_SPANK__SLURM_SPANK_OPTION_steelyard_netem"
    study.body(f"export SLURM_NNODES=2 {option}=x; sy_without_scheduler; compgen -v SLURM_")
    assert study.run().returncode == 0
    assert (study.attempt() / "out.0").read_text().split() == [option]


ALLOWED = "sed -n s/Cpus_allowed_list:.//p /proc/self/status"


def test_a_bound_rank_has_its_processor_and_the_tag_says_so(study: Study) -> None:
    study.body(f"sy_mpi_run 1 mpirun {ALLOWED}")
    assert study.run(SY_BIND="core").returncode == 0
    assert (study.attempt() / "out.0").read_text().strip().isdigit()
    assert (study.attempt() / "tags.0").read_text().startswith("mpi.bind=core\nmpirun.version=")
    assert study.run().returncode == 0
    assert (study.attempt("local.2") / "tags.0").read_text() == "mpi.bind=none\n"


def test_clients_that_share_a_node_are_not_bound_to_the_same_processors(study: Study) -> None:
    study.body(f"sy_mpi_run 1 mpirun {ALLOWED}", clients=2)
    assert study.run(SY_BIND="core").returncode == 1
    assert "2 clients share this node" in study.result()["reason"]


def test_the_time_since_boot_is_read_by_no_process() -> None:
    """Its end may be waited for on a busy node, and then the wall clock had jumped, it was said."""
    script = """source "$1"; read() { builtin read "$@"; by=$BASHPID; }
sy_read_uptime up; echo "$$ $by $up"; cat /proc/uptime"""
    argv = ["bash", "-c", script, "bash", str(ROOT / "jobscripts/lib/clocks.sh")]
    first, second = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )[:2]
    shell, by, up_us = first.split()
    assert by == shell
    assert 0 <= float(second.split()[0]) - int(up_us) / 1e6 < 60
