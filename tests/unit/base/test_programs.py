"""Where Steelyard's own programs are searched, and in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.sources import sample_library
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.errors import MissingError

NAME = programs.PROGRAM


def make_program(folder: Path, name: str = NAME) -> Path:
    """An executable file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("")
    path.chmod(0o755)
    return path


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every folder that may have the program, the first searched one first."""
    variable, checkout, wheel, path, *admin = (
        tmp_path / name for name in ("variable", "checkout", "wheel", "path", "local", "usr")
    )
    monkeypatch.setenv("STEELYARD_NODE", str(variable / NAME))
    monkeypatch.setattr(programs, "BUILT", checkout)
    monkeypatch.setattr(programs, "BUNDLED", wheel)
    monkeypatch.setenv("PATH", str(path))
    monkeypatch.setattr(programs, "INSTALLED", tuple(admin))
    return [variable, checkout / "bin", wheel, path, *admin]


def test_programs_are_found_in_the_stated_order(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in places:
        make_program(folder)
    for folder in places:
        assert programs.find_node_program() == folder / NAME
        (folder / NAME).unlink()
        monkeypatch.delenv("STEELYARD_NODE", raising=False)
    assert programs.find_program(NAME) is None


def test_the_variable_must_name_a_program(places: list[Path]) -> None:
    make_program(places[1])
    with pytest.raises(MissingError, match="no program that can be run"):
        programs.find_node_program()


def test_a_file_that_may_not_be_executed_is_not_a_program(places: list[Path]) -> None:
    make_program(places[2]).chmod(0o644)
    make_program(places[4])
    assert programs.find_program(NAME) == places[4] / NAME


def test_other_programs_are_searched_in_path_alone(places: list[Path]) -> None:
    make_program(places[2], "fio")
    assert programs.find_program("fio") is None
    make_program(places[3], "fio")
    assert programs.find_program("fio") == places[3] / "fio"


def test_the_message_names_the_folders_and_both_remedies(
    places: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STEELYARD_NODE")
    with pytest.raises(MissingError) as raised:
        programs.find_node_program()
    message = str(raised.value)
    for folder in (*places[1:3], *places[4:], "PATH"):
        assert str(folder) in message
    assert "install the wheel of Steelyard for this platform" in message
    assert "`make all` in the checkout" in message
    assert "STEELYARD_NODE" in message


def test_programs_outside_the_wheel_have_one_remedy() -> None:
    assert programs.remedy("steelyard-stream") == "run `make all` in the checkout"


def test_the_library_is_searched_in_the_wheel_before_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that cannot be loaded ends the search, which shows which one was tried."""
    monkeypatch.delenv("STEELYARD_SAMPLES", raising=False)
    monkeypatch.setattr(sample_library, "BUILT", tmp_path / "checkout")
    monkeypatch.setattr(sample_library, "BUNDLED", tmp_path / "wheel")
    monkeypatch.setattr(sample_library, "INSTALLED", (tmp_path / "usr",))
    tried: list[str] = []

    def load(path: str) -> None:
        tried.append(path)
        raise OSError

    monkeypatch.setattr("ctypes.CDLL", load)
    for folder in ("usr", "wheel", "checkout/lib"):
        make_program(tmp_path / folder, sample_library.LIBRARY)
        assert sample_library.read_samples.__wrapped__() is None
    assert [Path(path).parent.relative_to(tmp_path).as_posix() for path in tried] == [
        "usr", "wheel", "checkout/lib",
    ]  # fmt: skip
