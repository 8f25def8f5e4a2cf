"""Files of sites: what each node shapes, and what is refused."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from steelyard.analysis.job import job_view
from steelyard.wrappers.base.errors import ConditionError, UsageError
from steelyard.wrappers.commands import netem
from steelyard.wrappers.netem import condition_descriptions, program, sites
from steelyard.wrappers.submit import node_kernel_checks

FILE = """
[site.cern]
addresses = ["10.1.0.0/24"]
[site.fnal]
addresses = ["10.2.0.0/24", "10.2.1.7", "fd00:2::/64"]
[site.desy]
addresses = ["10.3.0.0/24"]
[[link]]
from = "cern"
to = "fnal"
netem = "delay=60ms,loss=0.01%"
[[link]]
from = "fnal"
to = "cern"
netem = "delay=45ms"
[[link]]
between = ["cern", "desy"]
netem = "delay=8ms,rate=10gbit"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sites.toml"
    path.write_text(FILE)
    return path


def test_each_site_shapes_what_it_sends(file: Path) -> None:
    found = sites.read_sites(file)
    assert sites.list_conditions(found, "cern") == [
        ("fnal", "delay=60ms,loss=0.01%,to=10.2.0.0/24,to=10.2.1.7,to=fd00:2::/64"),
        ("desy", "delay=8ms,rate=10gbit,to=10.3.0.0/24"),
    ]
    assert sites.list_conditions(found, "fnal") == [("cern", "delay=45ms,to=10.1.0.0/24")]
    assert sites.list_conditions(found, "desy") == [
        ("cern", "delay=8ms,rate=10gbit,to=10.1.0.0/24")
    ]


def test_a_node_finds_its_site(file: Path) -> None:
    found = sites.read_sites(file)
    assert sites.find_site(found, ["192.168.0.1", "10.2.1.7"]) == "fnal"
    assert sites.find_site(found, ["fd00:2::9"]) == "fnal"
    with pytest.raises(UsageError, match=r"this node \(10\.9\.0\.1\) is in no site: say --site"):
        sites.find_site(found, ["10.9.0.1"])
    with pytest.raises(UsageError, match="is in cern and desy"):
        sites.find_site(found, ["10.1.0.1", "10.3.0.1"])


def test_many_addresses_are_several_conditions(tmp_path: Path) -> None:
    path = tmp_path / "many.toml"
    addresses = ", ".join(f'"10.2.0.{last}"' for last in range(1, 20))
    path.write_text(
        f'[site.a]\naddresses = ["10.1.0.1"]\n[site.b]\naddresses = [{addresses}]\n'
        '[[link]]\nfrom = "a"\nto = "b"\nnetem = "delay=1ms"\n'
    )
    wanted = sites.list_conditions(sites.read_sites(path), "a")
    assert [spec.count("to=") for _, spec in wanted] == [8, 8, 3]
    assert len({part for _, spec in wanted for part in spec.split(",")[1:]}) == 19


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('netem = "delay=45ms"', "", "link: expected from"),
        ('from = "fnal"', 'from = "slac"', "site slac is not known: cern, fnal, desy"),
        ("10.3.0.0/24", "10.2.0.128/25", "10.2.0.128/25 of desy and 10.2.0.0/24 of fnal overlap"),
        ("10.3.0.0/24", "10.3.0.1/24", "site desy: 10.3.0.1/24 has host bits set"),
        ("delay=45ms", "delay=45ms,to=10.0.0.1", "to=10.0.0.1: the link says where"),
        ('between = ["cern", "desy"]', 'from = "cern"\nto = "fnal"', "given twice"),
        ("[site.desy]", "[site.desy]\nplace = 1", "site desy: unknown key place"),
        ("[[link]]", "[[way]]", "the file: unknown key way; known are site, link"),
    ],
)
def test_what_is_wrong_is_named(file: Path, old: str, new: str, words: str) -> None:
    file.write_text(FILE.replace(old, new))
    with pytest.raises(UsageError, match=words):
        sites.read_sites(file)


def test_echoes_go_to_a_destination_that_is_one_node() -> None:
    assert netem.find_peer("delay=1ms,to=10.2.0.0/24,to=10.2.1.7,to=fd00::1") == "10.2.1.7"
    assert netem.find_peer("delay=1ms,to=10.2.0.0/24") is None


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    netem.add_arguments(parser)
    return netem.main(parser.parse_args(["sites", *words]))


def test_a_dry_run_prints_canonical_conditions(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(FILE.replace("delay=45ms", "delay=0.045s"))
    assert run(str(file), "--site", "fnal", "--dry-run") == 0
    assert capsys.readouterr().out == "fnal -> cern: delay=45ms,to=10.1.0.0/24\n"
    file.write_text(FILE.replace("delay=45ms", "delay=45"))
    with pytest.raises(UsageError, match="delay=45: expected a time with unit"):
        run(str(file), "--site", "fnal", "--dry-run")


@pytest.fixture
def compiled(file: Path, tmp_path: Path) -> Path:
    return sites.write_sites(sites.read_sites(file), file, tmp_path / "made")


def test_jobs_find_a_compiled_file(compiled: Path) -> None:
    assert compiled.name == "sites.sites"
    assert compiled.stat().st_mode & 0o777 == 0o644
    assert compiled.read_text() == (
        "# steelyard netem sites sites.toml --write\n"
        "site cern 10.1.0.0/24\n"
        "to fnal delay=60ms,loss=0.01%,to=10.2.0.0/24,to=10.2.1.7,to=fd00:2::/64\n"
        "to desy delay=8ms,rate=10gbit,to=10.3.0.0/24\n"
        "site fnal 10.2.0.0/24 10.2.1.7 fd00:2::/64\n"
        "to cern delay=45ms,to=10.1.0.0/24\n"
        "site desy 10.3.0.0/24\n"
        "to cern delay=8ms,rate=10gbit,to=10.1.0.0/24\n"
    )
    assert [path.name for path in compiled.parent.iterdir()] == ["sites.sites"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("trace=wan", "link from a to b: trace=wan: jobs cannot have that"),
        ("sites=wan", "link from a to b: sites=wan: jobs cannot have that"),
        ("none", "link from a to b: none: jobs cannot have that"),
        ("delay=1ms,rto_min=2ms", "link from a to b: rto_min=2ms: jobs cannot have that"),
        ("delay=1", "delay=1: expected a time with unit"),
    ],
)
def test_what_no_job_can_have_is_not_compiled(tmp_path: Path, wrong: str, said: str) -> None:
    path = tmp_path / "wan.toml"
    path.write_text(PAIR.format(first="a", wrong=wrong))
    with pytest.raises(UsageError, match=re.escape(said)):
        sites.write_sites(sites.read_sites(path), path, tmp_path / "made")
    assert not (tmp_path / "made").exists()


PAIR = """
[site."{first}"]
addresses = ["10.1.0.0/24"]
[site.b]
addresses = ["10.2.0.0/24"]
[[link]]
from = "{first}"
to = "b"
netem = "{wrong}"
"""


def test_names_that_jobs_cannot_say(tmp_path: Path) -> None:
    path = tmp_path / "a.b.toml"
    path.write_text(PAIR.format(first="a", wrong="delay=1ms"))
    with pytest.raises(UsageError, match=r"jobs ask for sites=a\.b: expected a file named by"):
        sites.write_sites(sites.read_sites(path), path, tmp_path)
    path.write_text(PAIR.format(first="a b", wrong="delay=1ms"))
    with pytest.raises(UsageError, match=r"site a b: expected at most 31 letters"):
        sites.compile_sites(sites.read_sites(path), path)


def test_a_folder_that_cannot_be_written_to(file: Path, tmp_path: Path) -> None:
    (tmp_path / "made").write_text("a file")
    with pytest.raises(ConditionError, match=r"made/sites\.sites: cannot be written: .*--into DIR"):
        sites.write_sites(sites.read_sites(file), file, tmp_path / "made")


def test_a_study_without_the_file_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sites, "FOLDER", tmp_path)
    batch = type("Batch", (), {"conditions": {1: program.Conditions("sites=wan")}})()
    doubt = node_kernel_checks.check_sites([batch])
    assert doubt is not None
    assert f"there is no {tmp_path}/wan.sites: each node needs it for sites=wan" in doubt
    (tmp_path / "wan.sites").touch()
    assert node_kernel_checks.check_sites([batch]) is None


LINK = {
    "to_site": "fnal", "applied": "delay=60ms,to=10.2.0.0/24", "peer": "10.2.0.5", "valid": False,
    "invalid_reason": "at the end …",
    "rtt": {"before": {"received": 25, "mean_s": 2e-4, "median_s": 2e-4},
            "during_start": {"received": 25, "mean_s": 0.0602, "median_s": 0.0602}},
}  # fmt: skip
DOCUMENT = {
    "requested": "sites=wan", "applied": "sites=wan", "valid": False, "devices": [],
    "invalid_reason": "to site fnal: at the end …",
    "missing": {"rtt.during_start": "each link has its own, under sites.links"},
    "sites": {"name": "wan", "sha256": "ab12", "here": "cern", "links": [LINK]},
}  # fmt: skip


TOLD = (
    "to fnal: delay=60ms,to=10.2.0.0/24: to 10.2.0.5 before 200 µs, at the start 60.2 ms; "
    "NOT VALID: at the end …"
)
SHOWN = (
    "to site fnal: delay=60ms,to=10.2.0.0/24: round trip to 10.2.0.5: before 200.0 µs, during "
    "60.20 ms and \N{EN DASH}, after \N{EN DASH}; invalid: at the end …"
)


def test_each_link_is_told_in_words() -> None:
    assert list(condition_descriptions.format_document(DOCUMENT)) == [
        "requested sites=wan",
        "applied   sites=wan",
        "site      cern, by wan.sites (ab12)",
        TOLD,
        "NOT VALID to site fnal: at the end …",
    ]
    assert job_view.describe_links(DOCUMENT) == ["at site cern of wan, sha256 ab12", SHOWN]
