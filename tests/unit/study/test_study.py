"""A study file is read strictly: every fault is one line with file, key, value, what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.schedulers import registry as schedulers_registry
from steelyard.wrappers.study import study
from steelyard.wrappers.study.job_settings import time_limit_s

ROOT = Path(__file__).resolve().parents[3]
USE = '[[benchmark]]\nuse = "filesystem"\n'
MEANT = (
    "clients, node, node_type, kernel_release, network, launcher, cache, mode, "
    "nodes, tasks_per_node, cpus_per_task"
)
NAME = "letters, digits, '_', '.' and '-', at most 64, the first a letter or digit"

# The content of s.toml, and the message after "s.toml: ".
BAD = {
    "no TOML at all": ("[study", "no TOML: Expected ']' at the end of a table declaration"),
    "an unknown section": (
        "[studdy]\n" + USE,
        (
            "studdy: unknown key; known: study, job, factors, baseline, place, benchmark; "
            "did you mean 'study'?"
        ),
    ),
    "an unknown key": (
        "[study]\nrepeats = 3\n" + USE,
        "study.repeats: unknown key; known: name, repeat, blocks, seed, order, stop, equivalent, tolerate, max_core_hours, paper, scaling; did you mean 'repeat'?",
    ),
    "a section that is a value": ("study = 1\n" + USE, "study = 1: allowed is a table: [study]"),
    "a name for a folder elsewhere": (
        '[study]\nname = "../x"\n' + USE,
        f'study.name = "../x": allowed is {NAME}',
    ),
    "a time-out of nothing": (
        '[job]\ntime_out = "0"\n' + USE,
        'job.time_out = "0": allowed is "HH:MM:SS" or "D-HH:MM:SS", longer than zero',
    ),
    "a time-out that never comes": (
        '[job]\ntime_limit = "00:05:00"\ntime_out = "00:05:00"\n' + USE,
        'job.time_out = "00:05:00": allowed is less than time_limit = 00:05:00, or it never comes',
    ),
    "too many retries": (
        "[job]\nretries = 101\n" + USE,
        "job.retries = 101: allowed is a whole number from 0 to 100",
    ),
    "an unknown binding": (
        '[job]\nbind = "numa"\n' + USE,
        'job.bind = "numa": allowed is "none", "core" or "socket"',
    ),
    "a warm-up that is none": (
        "[job]\nwarm_up = true\n" + USE,
        "job.warm_up = true: allowed is a whole number from 0 to 1000",
    ),
    "cold caches that a warm-up fills": (
        '[job]\nwarm_up = 1\n[factors]\ncache = ["warm", "cold"]\n' + USE,
        'job.warm_up: cache = "cold" drops the caches once, before the job begins, and warm_up fills them again: leave out warm_up, or the cold levels',
    ),
    "cold caches that a failed try fills": (
        '[job]\nretries = 2\n[factors]\ncache = ["cold:cvmfs=300"]\n' + USE,
        'job.retries: cache = "cold:cvmfs=300" drops the caches once, before the job begins, and retries fills them again: leave out retries, or the cold levels',
    ),
    "a baseline within what is no factor": (
        '[factors]\nclients = [1, 2]\n[baseline]\nwithin = ["client"]\n' + USE,
        "baseline.within: client is no factor; did you mean 'clients'?",
    ),
    "a baseline within and at a level": (
        '[factors]\nclients = [1, 2]\n[baseline]\nclients = 1\nwithin = ["clients"]\n' + USE,
        "baseline.within: clients has a level in [baseline], too: leave one of the two out",
    ),
    "a baseline within all that varies": (
        '[factors]\nclients = [1, 2]\ncache = ["warm"]\n[baseline]\nwithin = ["clients"]\n' + USE,
        "baseline.within: no other factor has several levels, so that nothing is compared: leave a factor out",
    ),
    "a baseline within a text": (
        '[factors]\nclients = [1, 2]\n[baseline]\nwithin = "clients"\n' + USE,
        'baseline.within = "clients": allowed is a list; each member: the name of a factor',
    ),
    "a factor called within": (
        "[factors]\nwithin = [1, 2]\n" + USE,
        "factors.within: a key of [baseline] has this name: choose another one",
    ),
    "repeat zero": (
        "[study]\nrepeat = 0\n" + USE,
        "study.repeat = 0: allowed is a whole number from 1 to 999",
    ),
    "repeat as text": (
        '[study]\nrepeat = "5"\n' + USE,
        'study.repeat = "5": allowed is a whole number from 1 to 999',
    ),
    "repeat as a flag": (
        "[study]\nrepeat = true\n" + USE,
        "study.repeat = true: allowed is a whole number from 1 to 999",
    ),
    "more blocks than repeats": (
        "[study]\nrepeat = 3\nblocks = 4\n" + USE,
        "study.blocks = 4: allowed is at most repeat = 3: every block holds every condition",
    ),
    "an equivalence without its unit": (
        "[study]\nequivalent = 2\n" + USE,
        'study.equivalent = 2: allowed is the largest overhead that does not matter, such as "2%"',
    ),
    "an equivalence of nothing": (
        '[study]\nequivalent = "0%"\n' + USE,
        'study.equivalent = "0%": allowed is the largest overhead that does not matter, such as "2%"',
    ),
    "a tolerance of nothing": (
        '[study]\ntolerate = "0%"\n[factors]\nclients = [1, 2]\n' + USE,
        'study.tolerate = "0%": allowed is how much worse a figure may be, such as "10%"',
    ),
    "a tolerance in words": (
        '[study]\ntolerate = "abc"\n[factors]\nclients = [1, 2]\n' + USE,
        'study.tolerate = "abc": allowed is how much worse a figure may be, such as "10%"',
    ),
    "a tolerance below 0": (
        "[study]\ntolerate = -1\n[factors]\nclients = [1, 2]\n" + USE,
        'study.tolerate = -1: allowed is how much worse a figure may be, such as "10%"',
    ),
    "a tolerance without numbers": (
        '[study]\ntolerate = "10%"\n[factors]\ncache = ["cold", "warm"]\n' + USE,
        (
            "study.tolerate: no factor has two levels that are numbers, or network conditions that differ "
            'in one number, such as network = ["none", "delay=50ms"]: add one, or leave out tolerate; '
            "factors of [baseline] within do not count"
        ),
    ),
    "a node that is a list": (
        '[factors]\nnode = ["n[1-3]"]\n' + USE,
        'factors.node = "n[1-3]": allowed is the name of one node, as the scheduler has it, such as "n1"',
    ),
    "a node that is a number": (
        '[factors]\nnode = ["17"]\n' + USE,
        'factors.node = "17": allowed is the name of one node, as the scheduler has it, such as "n1"',
    ),
    "a node with clients": (
        '[factors]\nnode = ["n1", "n2"]\nclients = [1, 2]\n' + USE,
        "factors.node: each run is on the one node of its level: leave out the factor clients",
    ),
    "each beside a node": (
        '[factors]\nnode = ["each", "n1"]\n' + USE,
        'factors.node: "each" in a list: write node = "each", or name the nodes',
    ),
    "nodes in a word": (
        '[factors]\nnode = "all"\n' + USE,
        'factors.node = "all": allowed is a list of nodes such as ["n1", "n2"], or "each"',
    ),
    "each node of a type": (
        '[factors]\nnode = "each"\nnode_type = ["physical"]\n' + USE,
        (
            "factors.node: each run is on the one node of its level: leave out the factor node_type, "
            'or name the nodes instead of "each"'
        ),
    ),
    "a node among several": (
        '[job]\nnodes = 2\n[factors]\nnode = ["n1", "n2"]\n' + USE,
        "job.nodes = 2: allowed is 1 with the factor node: each run is on one node",
    ),
    "a half-width without unit": (
        '[study]\nstop = { half_width = "1" }\n' + USE,
        'study.stop.half_width = "1": allowed is a share of the mean above zero, such as "1%"',
    ),
    "a time limit in another unit": (
        '[job]\ntime_limit = "10min"\n' + USE,
        'job.time_limit = "10min": allowed is "HH:MM:SS" or "D-HH:MM:SS", longer than zero',
    ),
    "a time limit of zero": (
        '[job]\ntime_limit = "00:00:00"\n' + USE,
        'job.time_limit = "00:00:00": allowed is "HH:MM:SS" or "D-HH:MM:SS", longer than zero',
    ),
    "more idle than the run may last": (
        '[job]\ntime_limit = "00:01:00"\nidle_s = 30\n' + USE,
        "job.idle_s = 30: allowed is less than half of time_limit = 00:01:00: it comes twice",
    ),
    "a partition with a blank": (
        '[job]\npartition = "a b"\n' + USE,
        "job.partition = \"a b\": allowed is letters, digits and any of '_.,@+-'",
    ),
    "an option of ours": (
        '[job]\noptions = ["--array=1-2"]\n' + USE,
        'job.options: "--array=1-2": Steelyard sets this option itself: leave it out',
    ),
    "the beginning of an option of ours": (
        '[job]\noptions = ["--outp=x"]\n' + USE,
        'job.options: "--outp=x": Steelyard sets this option itself: leave it out',
    ),
    "a short option of ours": (
        '[job]\noptions = ["-ox"]\n' + USE,
        'job.options: "-ox": Steelyard sets this option itself: leave it out',
    ),
    "an option that has a key": (
        '[job]\noptions = ["-t5"]\n' + USE,
        'job.options: "-t5": use [job] time_limit instead',
    ),
    "an option that is none": (
        '[job]\noptions = ["mem=4G"]\n' + USE,
        'job.options = "mem=4G": allowed is one option of the scheduler per text, such as --mem=4G',
    ),
    "an option with a second line": (
        '[job]\noptions = ["--mem=4G\\n#SBATCH --uid=0"]\n' + USE,
        (
            'job.options = "--mem=4G?#SBATCH --uid=0": '
            "allowed is one option of the scheduler per text, such as --mem=4G"
        ),
    ),
    "a tag that is no text": (
        "[job.tags]\nrun = 3\n" + USE,
        "job.tags.run = 3: allowed is a text of one line, at most 200 characters, all of them ASCII",
    ),
    "nodes beside clients": (
        "[job]\nnodes = 2\n[factors]\nclients = [1]\n" + USE,
        "job.nodes = 2: allowed is 1 with the factor clients: a job has one node per client",
    ),
    "a factor that is no list": (
        "[factors]\nclients = 2\n" + USE,
        (
            "factors.clients = 2: allowed is a list of levels, at least one; a range "
            '{ from = 1, to = 8 }, with step or factor; { files = "data/*.root" }, with sample; or '
            'names, { near = "delay=1ms", far = "delay=50ms" }'
        ),
    ),
    "a named level twice": (
        '[factors]\nnetwork = { a = "delay=1ms", b = "delay=1ms" }\n' + USE,
        'factors.network.b: "delay=1ms" is the level a already',
    ),
    "a level's name with a blank": (
        '[factors]\nnetwork = { "far away" = "delay=1ms" }\n' + USE,
        (
            "factors.network.far away: a level's name has at most 32 letters, digits, '_', '.', '+' "
            "and '-', a letter or digit first"
        ),
    ),
    "a level's name that is another level": (
        '[factors]\nnetwork = { none = "delay=1ms", near = "none" }\n' + USE,
        "factors.network.none: is the level of near, too: choose another name for delay=1ms",
    ),
    "a named level that is a list": (
        '[factors]\nnetwork = { a = ["delay=1ms"] }\n' + USE,
        'factors.network.a = ["delay=1ms"]: allowed is a text, a number, true or false',
    ),
    "a level twice": (
        "[factors]\nclients = [1, 2, 1]\n" + USE,
        "factors.clients: 1 is listed twice: a level is named once",
    ),
    "half a client": (
        "[factors]\nclients = [0.5]\n" + USE,
        "factors.clients = 0.5: allowed is whole numbers from 1 to 100000",
    ),
    "a mode that is none": (
        '[factors]\nmode = ["paralel"]\n' + USE,
        'factors.mode = "paralel": allowed is "parallel" or "sequential"',
    ),
    "a launcher": (
        '[factors]\nlauncher = ["podmann:debian:12"]\n' + USE,
        (
            "factors.launcher: \"podmann:debian:12\": 'podmann' is no launcher: known: bare, "
            "unshare, docker:IMAGE, podman:IMAGE, apptainer:IMAGE, lxc:NAME, "
            "systemd-nspawn:ROOT; did you mean 'podman'?"
        ),
    ),
    "a launcher twice": (
        '[factors]\nlauncher = ["unshare,cpus=1", "unshare,cpus=1,network=host"]\n' + USE,
        (
            'factors.launcher: "unshare,cpus=1,network=host" asks for the same as '
            '"unshare,cpus=1": a level is named once'
        ),
    ),
    "a factor without a meaning": (
        "[factors]\nclient = [1, 2]\n" + USE,
        (
            f"factors.client: no factor with a meaning ({MEANT}) and no parameter of filesystem; "
            "did you mean 'clients'?"
        ),
    ),
    "a level that a parameter refuses": (
        '[factors]\nsync = ["each", "never"]\n' + USE,
        'factors.sync = "never": allowed is one of each, end, none',
    ),
    "a baseline that is no level": (
        "[factors]\nclients = [1, 2]\n[baseline]\nclients = 3\n" + USE,
        "baseline.clients = 3: allowed is one of the factor's levels: 1, 2",
    ),
    "a baseline without factors": (
        "[baseline]\nclient = 1\n" + USE,
        "baseline.client: unknown key; known: none",
    ),
    "a baseline of an unknown factor": (
        "[factors]\nclients = [1, 2]\n[baseline]\nclient = 1\n" + USE,
        "baseline.client: unknown key; known: clients, within; did you mean 'clients'?",
    ),
    "a place without node_type": (
        '[place.virtual]\nslurm = "--constraint=vm"\n' + USE,
        "place: levels of the factors node_type and kernel_release go here, and [factors] has neither",
    ),
    "a place of no level": (
        '[factors]\nnode_type = ["virtual"]\n[place.virtuel]\nslurm = "-C vm"\n' + USE,
        "place.virtuel: unknown key; known: virtual; did you mean 'virtual'?",
    ),
    "a place with loose values": (
        '[factors]\nnode_type = ["virtual"]\n[place.virtual]\nslurm = "-C vm"\n' + USE,
        (
            "place.virtual.slurm = \"-C vm\": allowed is options that begin with '-', "
            "values joined by '='"
        ),
    ),
    "a place for a scheduler that is not there yet": (
        '[factors]\nnode_type = ["virtual"]\n[place.virtual]\nlsf = "-l"\n' + USE,
        "place.virtual.lsf: unknown key; known: slurm, pbs",
    ),
    "a place where there is only one": (
        '[factors]\nnode_type = ["virtual"]\n[place.virtual]\nlocal = "-l"\n' + USE,
        "place.virtual.local: unknown key; known: slurm, pbs",
    ),
    "a place with an option of ours": (
        '[factors]\nnode_type = ["virtual"]\n[place.virtual]\nslurm = "--array=1"\n' + USE,
        'place.virtual.slurm: "--array=1": Steelyard sets this option itself: leave it out',
    ),
    "no benchmark": (
        "[study]\nrepeat = 2\n",
        'benchmark: missing: give at least one [[benchmark]] with use = "filesystem" or "hpl"',
    ),
    "a benchmark without a name": (
        "[[benchmark]]\nn = 5\n",
        'benchmark[1].use: missing: allowed is "filesystem" or "hpl"',
    ),
    "an unknown benchmark": (
        USE + '[[benchmark]]\nuse = "filesytem"\n',
        (
            'benchmark[2].use = "filesytem": allowed is "filesystem" or "hpl"; '
            "did you mean 'filesystem'?"
        ),
    ),
    "an unknown parameter": (
        USE + "iteration = 3\n",
        (
            "benchmark[1].iteration: unknown key; known: use, test, directory, size, copy_files, "
            "write_files, file_size, iterations, buffer, sync, direct, process, overwrite, rest; did "
            "you mean 'iterations'?"
        ),
    ),
    "a parameter in another unit": (
        USE + 'size = "4 megs"\n',
        (
            'benchmark[1].size = "4 megs": allowed is a size such as 256MiB, 1kB or a number of '
            "bytes, at least 1"
        ),
    ),
    "an impossible member of a list": (
        USE + "iterations = [1, 0]\n",
        "benchmark[1].iterations = 0: allowed is a whole number, at least 1",
    ),
    "a parameter that is a factor too": (
        "[factors]\niterations = [1, 2]\n" + USE + "iterations = 3\n",
        "benchmark[1].iterations: is a factor too: give it in one place only",
    ),
    "the same benchmark twice": (
        USE + 'size = "1kB"\n' + USE + "size = 1000\n",
        "benchmark[2].use: 'filesystem size=1000' is in the study twice: leave one out",
    ),
    "more runs than anyone waits for": (
        f"[study]\nrepeat = 999\n[factors]\nclients = {list(range(1, 1003))}\n{USE}",
        "study.repeat: 1002 conditions x 999 are over 1000000 runs",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_fault_is_one_exact_line(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from steelyard.jobscripts import registry

    monkeypatch.setattr(registry, "names", lambda: ["filesystem", "hpl"])
    toml, message = BAD[case]
    with pytest.raises(UsageError) as caught:
        schedulers_registry.check_options(
            study.parse_study(toml.encode(), Path("s.toml")),
            schedulers_registry.find_class("slurm"),
        )
    text = str(caught.value)
    assert "\n" not in text
    assert (
        text.removeprefix("s.toml: ").startswith(message)
        if case == "no TOML at all"
        else (text == f"s.toml: {message}")
    )


def test_a_fault_names_its_key_for_programs_too() -> None:
    with pytest.raises(UsageError) as caught:
        study.parse_study((USE + "iteration = 3\n").encode(), Path("s.toml"))
    assert caught.value.part == "benchmark[1].iteration"


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml: cannot be read: No such file"):
        study.load_study(tmp_path / "none.toml")


def test_bytes_that_are_no_text_are_said() -> None:
    with pytest.raises(
        UsageError, match=r"^s\.toml line 1: the byte 0xff is no UTF-8: save the file as UTF-8$"
    ):
        study.parse_study(b"\xff\xfe", Path("s.toml"))


def test_what_is_left_out_has_its_default(write_study: Callable[..., Path]) -> None:
    found = study.load_study(write_study(text=USE))
    assert (found.name, found.repeat, found.blocks, found.seed) == ("study", 10, 5, 1)
    assert (found.factors, found.baseline, found.place) == ({}, {}, {})
    assert (found.job.nodes, found.job.exclusive, found.job.at_once) == (1, True, None)


def test_the_baseline_is_the_first_level_unless_named() -> None:
    text = "[factors]\nclients = [2, 1]\niterations = [3, 4]\n[baseline]\niterations = 4\n" + USE
    assert study.parse_study(text.encode(), Path("s.toml")).baseline == {
        "clients": 2,
        "iterations": 4,
    }


def test_neutral_levels_of_reserved_factors_are_taken() -> None:
    text = '[factors]\nnetwork = ["none"]\nlauncher = ["bare"]\ncache = ["warm"]\n' + USE
    found = study.parse_study(text.encode(), Path("s.toml"))
    assert found.baseline == {"network": "none", "launcher": "bare", "cache": "warm"}


def test_a_node_type_has_the_options_that_place_says() -> None:
    text = (
        '[factors]\nnode_type = ["physical", "virtual"]\n'
        "[place.virtual]\nslurm = \"--constraint=vm --gres='a b'\"\n" + USE
    )
    found = study.parse_study(text.encode(), Path("s.toml"))
    assert found.place == {
        "physical": {},
        "virtual": {"slurm": ("--constraint=vm", "--gres=a b")},
    }


def test_labels_hold_only_what_differs(write_study: Callable[..., Path]) -> None:
    found = study.load_study(write_study())
    assert [variant.label for variant in found.variants] == [
        "filesystem test=large_file_copy",
        "filesystem test=small_file_write",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("00:00:01", 1), ("01:02:03", 3723), ("2-00:00:00", 172800), ("1:00", None), ("25", None)],
)
def test_time_limits_are_read_as_slurm_reads_them(text: str, seconds: int | None) -> None:
    assert time_limit_s(text) == seconds


def test_the_example_of_the_reference_is_a_study() -> None:
    text = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    example = text.split("```toml\n", 1)[1].split("```", 1)[0]
    found = study.parse_study(example.encode(), Path("docs/study.md"))
    assert found.factors["clients"] == (1, 2)


def test_the_reference_names_every_key() -> None:
    from steelyard.wrappers.study import factors as study_factors
    from steelyard.wrappers.study import job_settings

    text = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    places = [one.name for one in schedulers_registry.list_classes() if not one.runs_here]
    keys = [*study.STUDY_KEYS, *job_settings.KEYS, *study_factors.MEANT, *places]
    assert [key for key in keys if f"`{key}`" not in text] == []


def test_the_wishes_of_a_run_reach_its_script(tmp_path: Path) -> None:
    text = (
        '[job]\nwarm_up = 2\ntime_out = "00:01:30"\nretries = 1\nbind = "core"\nidle_s = 30\n' + USE
    )
    job = study.parse_study(text.encode(), tmp_path / "s.toml").job
    wanted = {"SY_WARM_UP": "2", "SY_TIME_OUT_S": "90", "SY_RETRIES": "1", "SY_BIND": "core"}
    wanted["SY_IDLE_S"] = "30"
    assert job.script_variables() == wanted
    assert study.parse_study(USE.encode(), tmp_path / "s.toml").job.script_variables() == {}


def test_a_study_of_a_paper_says_whose_programs_run(write_study: Callable[..., Path]) -> None:
    head = '[study]\nname = "again"\npaper = "ruiz2015"\n[[benchmark]]\nuse = "npb"\n'
    with pytest.raises(UsageError) as caught:
        study.load_study(write_study(text=head))
    assert "study.paper: npb would run our programs" in str(caught.value)
    assert 'folder = "/path", or say implementation = "steelyard"' in str(caught.value)
    for told in ('implementation = "steelyard"', 'folder = "/opt/npb"'):
        assert study.load_study(write_study(text=f"{head}{told}\n")).variants
    assert study.load_study(write_study(text=head.replace('paper = "ruiz2015"\n', ""))).variants


def test_several_values_of_one_run_are_one_variant(write_study: Callable[..., Path]) -> None:
    text = '[[benchmark]]\nuse = "hpl"\nnbmin = "2 4 6"\npfact = ["left", "right"]\n'
    found = study.load_study(write_study(text=text)).variants
    assert [(one.values()["nbmin"], one.values()["pfact"]) for one in found] == [
        ("2 4 6", "left"),
        ("2 4 6", "right"),
    ]
    for wrong in ("2 four", "2 2", "2 0"):
        with pytest.raises(UsageError, match="or several different ones in one text"):
            study.load_study(write_study(text=text.replace("2 4 6", wrong)))
