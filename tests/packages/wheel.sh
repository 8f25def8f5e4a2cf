#!/bin/bash
# The wheel of packaging/wheel/wheel.sh in bare containers: no compiler, no checkout, no network.
#   tests/packages/wheel.sh
# On Debian 12 an ordinary user installs it by pipx, measures commands and runs a study. Debian 11 has
# an older C library and a Python that is too old for the rest: there the programs alone are started.
# The roots of both are kept in build/packages; mmdebstrap makes them. Exit code 1: a check failed.
set -Eeuo pipefail

cd "${BASH_SOURCE[0]%/*}/../.."
readonly kept=build/packages name=steelyard-wheel-$$
readonly wheels=build/wheel/dependencies
failed=0

ok() { # NAME EXPECTED COMMAND…: EXPECTED is in what the command prints
    local printed code=0
    printed=$("${@:3}" 2>&1) || code=$?
    if ((code == 0)) && [[ $printed == *"$2"* ]]; then
        echo "ok $1"
    else
        printf 'not ok %s: exit code %s, expected %s in\n%s\n' "$1" "$code" "$2" "$printed"
        failed=1
    fi
}

make_image() { # SUITE PACKAGES
    if [[ ! -e $kept/bare-$1.tar ]]; then
        mkdir -p "$kept"
        mmdebstrap -q --variant=minbase --include="$2" --dpkgopt=force-unsafe-io \
            --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
            --aptopt='Acquire::Check-Valid-Until "false"' \
            "$1" "$kept/bare-$1.part.tar" http://deb.debian.org/debian || return
        mv "$kept/bare-$1.part.tar" "$kept/bare-$1.tar"
    fi
    docker import "$kept/bare-$1.tar" "$name:$1" >/dev/null
}

# shellcheck disable=SC2317 # the trap runs it
remove_containers() {
    docker rm -f "$name" &>/dev/null || :
    docker rmi "$name:bookworm" "$name:bullseye" &>/dev/null || :
    rm -rf "$unpacked"
}

as_user() { docker exec -u user -w /home/user "$name" bash -c "$1"; }

check_debian_12() {
    make_image bookworm python3,pipx
    docker run -d --name "$name" --network none -v "$PWD/$wheels:/wheels:ro" \
        -e PIP_NO_INDEX=1 -e PIP_FIND_LINKS=/wheels "$name:bookworm" sleep infinity >/dev/null
    docker exec "$name" useradd -m user
    docker cp -q tests/packages/wheel_study.toml "$name:/home/user/files.toml"
    # shellcheck disable=SC2016 # the container's shell expands it
    ok "no compiler is here" none as_user 'test -z "$(type -P gcc cc clang make git)" && echo none'
    ok "pipx installs the wheel" "installed package steelyard" as_user 'pipx install /wheels/steelyard-*.whl'
    docker exec "$name" ln -s /home/user/.local/bin/steelyard /usr/local/bin/steelyard
    ok "all programs are found and executable" True as_user ".local/pipx/venvs/steelyard/bin/python -c '
from steelyard.wrappers.base import programs as node
print(all(node.find_program(name).parent == node.BUNDLED for name in node.IN_WHEEL))'"
    ok "steelyard run true" elapsed as_user 'steelyard run true'
    ok "three runs" '"number": 3' as_user 'steelyard run --repeat 3 --json -- true'
    ok "the doctor names the program" "site-packages/steelyard/libexec/steelyard-node" as_user 'steelyard doctor'
    ok "the doctor lists the benchmark" "yes benchmarks                filesystem" as_user 'steelyard doctor'
    ok "the probe" "container node" as_user 'steelyard probe'
    ok "a study runs" "4 of 4 runs executed here (0 failed" as_user 'steelyard submit files.toml --scheduler local'
    ok "it is collected" "4 records" as_user 'steelyard collect files.study'
    ok "it is reported" "4 of 4 runs completed" as_user 'steelyard report files.study'
    ok "the reader of samples is loaded" True as_user '.local/pipx/venvs/steelyard/bin/python -c "from steelyard.analysis.sources import sample_library as native; print(native.read_samples() is not None)"'
    ok "a benchmark that the wheel does not have" "run \`make all\` in the checkout" as_user '! steelyard run --benchmark stream'
    as_user 'rm -r .local/pipx/venvs/steelyard/lib/python3*/site-packages/steelyard/libexec'
    ok "without its programs it names the remedies" "install the wheel of Steelyard for this platform, or run \`make all\`" \
        as_user 'steelyard run true; (($? == 3))'
}

check_debian_11() {
    local program
    if ! make_image bullseye python3; then
        echo "# skipped: Debian 11 cannot be fetched"
        return
    fi
    for program in "$unpacked"/steelyard/libexec/steelyard-*; do
        ok "${program##*/} on Debian 11" usage docker run --rm --network none -v "$unpacked:/wheel:ro" \
            "$name:bullseye" "/wheel/steelyard/libexec/${program##*/}" --help
    done
    ok "the probe on Debian 11" '"node_type":"container"' docker run --rm --network none \
        -v "$unpacked:/wheel:ro" "$name:bullseye" /wheel/steelyard/libexec/steelyard-node probe
}

if ! docker info &>/dev/null || ! type -P mmdebstrap >/dev/null; then
    echo "wheel not run: no Docker engine answers, or mmdebstrap is missing" | tee -a "${GROUP_NOT_RUN:-/dev/null}"
    exit 0
fi
wheel=$(packaging/wheel/wheel.sh)
rm -f "$wheels"/steelyard-*.whl
build/wheel/venv/bin/pip download --disable-pip-version-check -q -d "$wheels" "$wheel" pip setuptools wheel
unpacked=$(mktemp -d "${TMPDIR:-/var/tmp}/steelyard-wheel.XXXXXX")
trap remove_containers EXIT
unzip -q "$wheel" -d "$unpacked"
check_debian_12
check_debian_11
exit $failed
