"""`install.sh user` of the tar on a machine whose Python has no ensurepip: Debian without python3-venv."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
VERSION = (ROOT / "VERSION").read_text().strip()
WITHOUT_ENSUREPIP = 'mount -t tmpfs none "$0" && exec "$@"'
MAIN = f'def main():\n    print("steelyard {VERSION}")\n'
WHEEL = {
    "steelyard_command.py": MAIN,
    "steelyard-{v}.dist-info/METADATA": "Metadata-Version: 2.1\nName: steelyard\nVersion: {v}\n",
    "steelyard-{v}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "steelyard-{v}.dist-info/entry_points.txt": "[console_scripts]\nsteelyard = steelyard_command:main\n",
    "steelyard-{v}.dist-info/RECORD": "",
}


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """The tar as `make package` makes it, with a command that prints its version alone."""
    if os.getuid() != 0:
        pytest.skip("hides a folder of Python's in a mount namespace: needs root")
    folder = tmp_path / "unpacked"
    (folder / "wheels").mkdir(parents=True)
    with zipfile.ZipFile(folder / f"wheels/steelyard-{VERSION}-py3-none-any.whl", "w") as wheel:
        for name, text in WHEEL.items():
            wheel.writestr(name.format(v=VERSION), text.format(v=VERSION))
    (pip,) = Path("/usr/share/python-wheels").glob("pip-*.whl")
    (folder / "wheels" / pip.name).symlink_to(pip)
    text = (ROOT / "packaging/dist/install.sh.in").read_text()
    words = {"PREFIX": tmp_path / "prefix", "VERSION": VERSION, "PYTHON": "3", "FOR_SLURM": "",
             "RECORD_DIR": "/r"}  # fmt: skip
    for word, value in words.items():
        text = text.replace(f"@{word}@", str(value))
    (folder / "install.sh").write_text(text)
    (folder / "install.sh").chmod(0o755)
    return folder


def install(unpacked: Path) -> subprocess.CompletedProcess[str]:
    """As root on a login node, with Debian's own Python."""
    ensurepip = Path(sysconfig.get_path("stdlib"), "ensurepip")
    argv = ["unshare", "--mount", "sh", "-c", WITHOUT_ENSUREPIP, ensurepip, unpacked / "install.sh"]
    environment = {"PATH": os.environ["PATH"], "PYTHON": "/usr/bin/python3", "HOME": "/root"}
    return subprocess.run(
        [*argv, "user"], capture_output=True, text=True, check=False, env=environment, timeout=120
    )


def version(unpacked: Path) -> str:
    command = unpacked.parent / "prefix/bin/steelyard"
    return subprocess.run([command], check=True, capture_output=True, text=True).stdout


def test_it_needs_no_ensurepip_and_changes_nothing_the_second_time(unpacked: Path) -> None:
    done = install(unpacked)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{unpacked.parent}/prefix/bin/steelyard\n"
    assert version(unpacked) == f"steelyard {VERSION}\n"
    again = install(unpacked)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_what_fails_leaves_what_was_there_before(unpacked: Path) -> None:
    wheel = next((unpacked / "wheels").glob("steelyard-*.whl"))
    kept = wheel.read_bytes()
    wheel.write_bytes(b"no wheel")
    done = install(unpacked)
    assert done.returncode != 0
    assert "nothing has changed" in done.stderr
    assert not (unpacked.parent / "prefix/lib/steelyard").exists()
    assert not (unpacked.parent / "prefix/bin").exists()

    wheel.write_bytes(kept)
    assert install(unpacked).returncode == 0
    wheel.write_bytes(b"no wheel")
    script = unpacked / "install.sh"
    script.write_text(script.read_text() + "# another release\n")
    assert install(unpacked).returncode != 0
    assert version(unpacked) == f"steelyard {VERSION}\n"
    names = {path.name for path in (unpacked.parent / "prefix/lib/steelyard").iterdir()}
    assert names == {"python"}
