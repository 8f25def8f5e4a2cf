"""Noise of MPI libraries, launchers and terminals changes no figure, and becomes notes of the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.benchmarks.test_output import FIO, GOOD, IDS, IOR, XHPL, parse, read, refusal

from steelyard.jobscripts import registry
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import MOST_NOTES, Note
from steelyard.jobscripts.registry import Result

# As openucx/ucx#1585, Open MPI 4.1, Intel MPI 2021 with I_MPI_DEBUG=5, NCCL 2.20 and libfabric print them.
UCX = "[1795275243.363293] [n1:1129006:0]          mpool.c:38   UCX  WARN  object 0x12334480 was not returned to mpool ucp_requests"
KNOWN = (
    UCX,
    "[1741636331.473893] [somehost:123] mpool.c:55   UCX  WARN  object 0x55555b12a040 was not returned to mpool CUDA EVENT objects",
    "[n1:01129] 1 more process has sent help message help-mpi-btl-openib.txt / no device params found",
    "[0] MPI startup(): libfabric provider: tcp",
    "n1:4242:4242 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
    "libfabric:4242:1600000000::core:core:ofi_hmem_init():421<warn> Failed to initialize hmem iface FI_HMEM_CUDA",
    "srun: Job 4711 step creation temporarily disabled, retrying (Requested nodes are busy)",
    "OMP: Warning #181: GOMP_CPU_AFFINITY: ignored because KMP_AFFINITY has been defined",
)
TAGS = {
    "[1,0]<stdout>:": "OMPI_MCA_orte_tag_output",
    "[prterun-n1-100629@1,0]<stdout>: ": "OMPI_MCA_orte_tag_output",
    "[1,0][n1:4242]<stdout>: ": "OMPI_MCA_orte_tag_output",
    "0: ": "SLURM_LABELIO",
    " 0: ": "SLURM_LABELIO",
    "[0] ": "mpiexec -prepend-rank",
}
RATE = {"rate": {"pattern": "^rate = ([0-9.e+]+)", "unit": "Gflop/s", "better": "higher"}}


def parse_with_notes(
    folder: Path, name: str, text: str | bytes, given: dict[str, object]
) -> tuple[list[Result], list[Note]]:
    """The figures and the notes of an output."""
    (folder / "out.0").write_bytes(text.encode() if isinstance(text, str) else text)
    notes: list[Note] = []
    benchmark = registry.load(name)
    found = benchmark.parse(folder, 0, given, notes)
    own = benchmark.own_figures(folder, 0, benchmark.check_parameters(given), notes)
    if own.missing:
        raise OutputError("out.0", "; ".join(own.missing.values()))
    return found + own.results, notes


@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_known_lines_before_and_behind_an_output_are_notes(
    tmp_path: Path, name: str, file: str, given: dict[str, object]
) -> None:
    right = parse(tmp_path, name, read(file), given)
    known = "".join(line + "\n" for line in KNOWN)
    found, notes = parse_with_notes(tmp_path, name, known + read(file) + known, given)
    assert found == right
    assert [note.text for note in notes if note.kind == "noise"] == [*KNOWN, *KNOWN]
    assert notes[0] == Note("noise", 1, UCX)


@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_a_known_line_among_the_lines_of_an_output_changes_nothing(
    tmp_path: Path, name: str, file: str, given: dict[str, object]
) -> None:
    lines = read(file).splitlines(keepends=True)
    right = parse(tmp_path, name, "".join(lines), given)
    for place in range(0, len(lines), max(1, len(lines) // 12)):
        noisy = [*lines[:place], UCX + "\n", *lines[place:]]
        assert parse(tmp_path, name, "".join(noisy), given) == right


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_an_output_whose_lines_have_a_tag_is_read(
    tmp_path: Path, name: str, file: str, given: dict[str, object], tag: str
) -> None:
    right = parse(tmp_path, name, read(file), given)
    lines = read(file).splitlines(keepends=True)
    found, notes = parse_with_notes(tmp_path, name, "".join(tag + one for one in lines), given)
    assert found == right
    (note,) = notes
    assert note.kind == "tag"
    assert TAGS[tag] in note.text


def test_a_tag_in_the_middle_of_a_line_is_refused_by_its_name(tmp_path: Path) -> None:
    text = read("hpl/N1000.np2.NB64.out")
    tagged = "".join("[1,0]<stdout>:" + line for line in text.splitlines(keepends=True))
    words = refusal(tmp_path, "hpl", tagged.replace("8.8125e+00", "8.8[1,1]<stdout>:125e+00"), XHPL)
    assert "the tag '[1,1]<stdout>' in the middle of a line" in words
    assert "OMPI_MCA_orte_tag_output" in words


def test_tags_before_a_part_of_the_lines_are_named(tmp_path: Path) -> None:
    lines = read("ior/easy.4.0.0.out").splitlines(keepends=True)
    words = refusal(
        tmp_path, "ior", "".join([*lines[:5], *("1: " + one for one in lines[5:])]), IOR
    )
    assert "a rank's tag, as of srun --label or SLURM_LABELIO" in words


def test_a_line_that_is_not_known_behind_the_end_is_noted(tmp_path: Path) -> None:
    for name, file, given in GOOD:
        if name in ("hpl", "hpcc", "ior", "mdtest", "io500", "stream", "iozone", "fio"):
            right = parse(tmp_path, name, read(file), given)
            line = "TACC:  Shutdown complete. Exiting."
            found, notes = parse_with_notes(tmp_path, name, read(file) + line + "\n", given)
            assert found == right, name
            place = read(file).count("\n") + 1
            if not given.get("xhpl"):  # NB: xhpl has empty lines at its end
                assert notes == [Note("unknown", place, line)], name


def test_the_start_of_a_second_output_is_refused(tmp_path: Path) -> None:
    text = read("ior/easy.4.0.0.out")
    words = refusal(tmp_path, "ior", text + text[:400], IOR)
    assert words.startswith("out.0: two outputs: 'IOR-4.0.0: MPI Coordinated Test of Parallel I/O'")


def test_an_output_that_is_cut_names_its_last_line(tmp_path: Path) -> None:
    text = read("ior/easy.4.0.0.out").partition("Summary of")[0]
    last = text.rstrip().splitlines()[-1].strip()
    assert f"the last line is '{last[:100]}'" in refusal(tmp_path, "ior", text, IOR)


# --- JSON ---


def test_lines_of_others_before_the_json_of_fio(tmp_path: Path) -> None:
    text, given = read("fio/randrw.3.33.json"), {**FIO, "rw": "randrw"}
    right = parse(tmp_path, "fio", text, given)
    line = "smalloc: OOM. Consider using --alloc-size to increase the shared memory available."
    found, notes = parse_with_notes(tmp_path, "fio", f"{line}\n{text}", given)
    assert (found, notes) == (right, [Note("unknown", 1, line)])


def test_two_documents_of_fio_are_refused_as_two(tmp_path: Path) -> None:
    text = read("fio/randrw.3.33.json")
    assert "two JSON objects" in refusal(tmp_path, "fio", text * 2, {**FIO, "rw": "randrw"})


def test_a_line_that_is_not_known_among_json_is_named(tmp_path: Path) -> None:
    lines = read("fio/randrw.3.33.json").splitlines(keepends=True)
    words = refusal(tmp_path, "fio", "".join([*lines[:9], "oops\n", *lines[9:]]), FIO)
    assert "in line 10: 'oops'" in words


def three_pairs(middle: str) -> str:
    """What lib/pairs.sh prints: three clients, of which the second one printed `middle`."""
    report = json.dumps(json.loads(read("iperf3/3.21-tcp.json"))["pairs"][0]["report"])
    rows = [
        f'{{"client":"{client}","server":"b","address":"10.9.9.2","exit_code":0,"errors":"","report":{text}}}'
        for client, text in (("n1", report), ("n2", middle.format(report)), ("n3", report))
    ]
    return '{"pairs":[' + ",".join(rows) + "]}\n"


IPERF3 = {"seconds": 1, "streams": 1}


def test_a_warning_of_one_client_of_iperf3_is_noted(tmp_path: Path) -> None:
    right = parse(tmp_path, "iperf3", three_pairs("{}"), IPERF3)
    assert len({found.iteration for found in right}) == 3
    line = "warning: UDP block size 2048 exceeds TCP MSS 1448, may result in fragmentation / drops"
    found, notes = parse_with_notes(tmp_path, "iperf3", three_pairs(line + "\n{}"), IPERF3)
    assert (found, notes) == (right, [Note("unknown", 1, line)])


@pytest.mark.parametrize(
    ("middle", "words"),
    [
        ("{0}\n{0}", "two JSON objects"),
        ("{}\niperf3: error - unable to send control message: Broken pipe", "Broken pipe"),
        ("Connection refused", "no report, but: 'Connection refused'"),
        ('{{"start": oops}}', "'{\"start\": oops}'"),
    ],
)
def test_a_bad_report_of_one_client_is_named(tmp_path: Path, middle: str, words: str) -> None:
    said = refusal(tmp_path, "iperf3", three_pairs(middle), IPERF3)
    assert said.startswith("iperf3 n2 > b: ")
    assert words in said


# --- bytes and colors ---


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (b"T = 300 \xb0C\nrate = 5.5 Gflop/s\n", ["bytes"]),
        (b"rate = 5.5 Gflop/s\nprogress \xe2\x96", ["bytes"]),
        (b"rate = 5.5 Gflop/s\n" + 4096 * b"\0" + b"\nend\n", []),
        (b"rate = 5.5 Gflop/s\r\nend\r\n", []),
        (b"\x1b[32mrate = 5.5\x1b[0m Gflop/s\n", ["color", "color"]),
    ],
    ids=["Latin-1", "cut", "NUL", "CRLF", "color"],
)
def test_bytes_and_colors_beside_a_figure(tmp_path: Path, data: bytes, kinds: list[str]) -> None:
    (tmp_path / "app.0").write_text("0 1000000 3000000 - -\n")
    found, notes = parse_with_notes(tmp_path, "app", data, {"command": "./a", "figures": RATE})
    assert found == [Result("seconds", 2.0, "s", 1), Result("rate", 5.5, "Gflop/s", 1)]
    assert [note.kind for note in notes] == kinds


def test_a_figure_that_has_a_broken_byte_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.0").write_text("0 1000000 3000000 - -\n")
    with pytest.raises(OutputError, match="5"):
        parse_with_notes(tmp_path, "app", b"rate = 5\xff5\n", {"command": "./a", "figures": RATE})


def test_lines_for_patterns_of_the_users_own_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "app.0").write_text("0 1000000 3000000 - -\n")
    figures = {"rate": {"pattern": r"^\d+: rate = ([0-9.]+)$", "unit": "1"}}
    text = "0: rate = 5\n1: rate = 6\n"
    found, notes = parse_with_notes(tmp_path, "app", text, {"command": "./a", "figures": figures})
    assert [one.value for one in found[1:]] == [5, 6]
    assert notes == []
    with pytest.raises(OutputError, match="SLURM_LABELIO"):
        parse_with_notes(tmp_path, "app", text, {"command": "./a", "figures": RATE})


def test_notes_of_a_kind_are_few(tmp_path: Path) -> None:
    text = read("ior/easy.4.0.0.out") + (UCX + "\n") * 1000
    _, notes = parse_with_notes(tmp_path, "ior", text, IOR)
    assert len(notes) == MOST_NOTES + 1
    assert notes[-1].text == "and 980 more of this kind"


def test_an_output_of_noise_alone_is_quoted(tmp_path: Path) -> None:
    line = "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification"
    words = refusal(tmp_path, "ior", line + "\n", IOR)
    assert words == f"out.0: IOR printed nothing but '{line}'"


def test_notes_of_a_refused_output_are_known(tmp_path: Path) -> None:
    (tmp_path / "out.0").write_text(UCX + "\nnothing else\n")
    notes: list[Note] = []
    with pytest.raises((OutputError, FailedError)):
        registry.load("ior").parse(tmp_path, 0, IOR, notes)
    assert notes == [Note("noise", 1, UCX)]
