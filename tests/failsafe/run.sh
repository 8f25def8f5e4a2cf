#!/bin/bash
# Test the tester: every runner must turn red on a planted failure, and for the right reason.
# A green suite means nothing where a runner cannot report (bats-core's "failsafe").
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

must_fail() { # NAME TEXT COMMAND…
    local -r name=$1 text=$2
    local output
    shift 2
    if output=$("$@" 2>&1); then
        printf 'failsafe: %s: the planted failure was not seen\n%s\n' "$name" "$output" >&2
        exit 1
    fi
    if ! grep -q -- "$text" <<<"$output"; then
        printf 'failsafe: %s: failed, but not by the planted failure (%s):\n%s\n' \
            "$name" "$text" "$output" >&2
        exit 1
    fi
    printf 'failsafe: %s sees a planted failure\n' "$name"
}

must_tell() { # NAME TEXT COMMAND…: and be no failure
    local -r name=$1 text=$2
    local output
    shift 2
    if ! output=$("$@" 2>&1) || ! grep -q -- "$text" <<<"$output"; then
        printf 'failsafe: %s: failed, or did not tell (%s):\n%s\n' "$name" "$text" "$output" >&2
        exit 1
    fi
    printf 'failsafe: %s tells so\n' "$name"
}

# A project of one source, one header and one C test, with our options.
project() { # FOLDER
    mkdir -p "$1/tests/c"
    cp meson_options.txt tests/failsafe/{meson.build,planted.c} "$1"
    cp -r tests/cross tests/lint.sh "$1/tests"
    cp tests/c/{tap,rhel8}.h "$1/tests/c"
    echo 'int planted(void);' >"$1/planted_lint.h"
    printf '#include "planted_lint.h"\nint planted(void) { return 0; }\n' >"$1/planted_lint.c"
}

c_test() {
    project "$scratch/tap"
    meson setup "$scratch/tap/build" "$scratch/tap" >/dev/null
    meson test -C "$scratch/tap/build" --print-errorlogs
}

pytest() { # OPTION…
    build/venv/bin/python -P -m pytest -q -c tests/failsafe/pytest.ini --confcutdir=tests "$@"
}

# The rooms' order, in a copy of the tree with one import too many, or one include.
layers() {
    mkdir -p "$scratch/tree/tests/unit/project"
    cp -r CONTRIBUTING.md facts jobscripts analysis wrappers "$scratch/tree"
    cp tests/unit/project/test_layers.py "$scratch/tree/tests/unit/project"
    echo 'from steelyard.analysis.report import page' >"$scratch/tree/analysis/stats/planted.py"
    pytest -k 'imports_only' "$scratch/tree/tests/unit/project/test_layers.py"
}

layers_c() {
    mkdir -p "$scratch/tree-c/tests/unit/project"
    cp -r CONTRIBUTING.md facts plugins "$scratch/tree-c"
    cp tests/unit/project/test_layers_c.py "$scratch/tree-c/tests/unit/project"
    echo '#include "sampler/child_state.h"' >"$scratch/tree-c/plugins/node/base/planted.c"
    pytest -k 'includes_only' "$scratch/tree-c/tests/unit/project/test_layers_c.py"
}

# The guard of tests/unit, in a copy that has one test more.
process_in_units() {
    mkdir -p "$scratch/units/tests"
    cp -r tests/unit tests/record_netem.py "$scratch/units/tests"
    cp tests/failsafe/planted_process.py "$scratch/units/tests/unit"
    pytest --rootdir "$scratch/units" "$scratch/units/tests/unit/planted_process.py"
}

# Two lanes of which one is red, and what nobody can run here.
groups() {
    PLANTED_GROUPS=tests/failsafe/planted_groups.sh GROUP_LOGS=$scratch/groups tests/run.sh "$1"
}

# Where no Docker engine answers.
no_engine() {
    GROUP_LOGS=$scratch/groups DOCKER_HOST=unix://$scratch/none tests/run.sh docker-host
}

# The runner of the containers' tests; of Docker there need be none.
containers() { # FILE.bats
    CLUSTERS=2 PATH=$PWD/tests/failsafe/engine:$PATH tests/docker/cluster.sh test host "$1"
}

# A test that is green, and a process of it that is not.
sanitized() {
    # shellcheck disable=SC2016 # the test's own
    tests/run_sanitized.sh one bash -c 'echo a leak >"${ASAN_OPTIONS##*log_path=}.1"; echo ok 1; echo 1..1'
}

fuzzer() {
    cp tests/failsafe/planted_red.sh "$scratch/fuzz_netem"
    build/venv/bin/python -P tests/fuzz/fuzz.py --seconds 1 "$scratch/fuzz_netem"
}

# A source is looked at again when its header has changed.
lint() { # COMPILER
    project "$scratch/$1"
    "$scratch/$1/tests/lint.sh" "$1" || return 0 # not by the planted failure
    echo 'int nobody_calls_me();' >>"$scratch/$1/planted_lint.h"
    "$scratch/$1/tests/lint.sh" "$1"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
must_fail layers 'analysis/stats/planted.py:1: steelyard.analysis.report.page' layers
must_fail layers_c 'plugins/node/base/planted.c:1: sampler/child_state.h' layers_c
must_fail 'gcc, of a header that changed' nobody_calls_me lint gcc
must_fail 'musl, of a header that changed' nobody_calls_me lint musl
must_fail pytest '1 failed' pytest tests/failsafe/planted_pytest.py
must_fail 'pytest with workers' '1 failed' pytest -n 2 --dist worksteal tests/failsafe/planted_pytest.py
must_fail 'pytest that skips everything' 'every test was skipped' pytest tests/failsafe/planted_skips.py
must_fail 'pytest with workers that skips everything' 'every test was skipped' \
    pytest -n 2 --dist worksteal tests/failsafe/planted_skips.py
must_fail 'a unit test that starts a process' 'file this test under tests/system' process_in_units
must_fail bats 'not ok 1 planted' tests/run_bats.sh tests/failsafe/planted.bats
must_fail 'bats that skips everything' 'no test ran to its end' \
    tests/run_bats.sh tests/failsafe/planted_skips.bats
must_fail tap 'planted FAIL' c_test
must_fail 'tests/run.sh, of two lanes' 'planted-red .* red' groups planted
must_tell 'tests/run.sh without Docker' 'docker-host .* not run: no Docker engine answers' no_engine
must_fail 'containers of two clusters' 'not ok 1 planted' containers tests/failsafe/planted.bats
must_fail 'containers that skip everything' 'no test ran to its end' \
    containers tests/failsafe/planted_skips.bats
must_tell 'containers that are green' 'ok 1 planted' containers tests/failsafe/planted_green.bats
must_fail 'a sanitized test' 'a leak' sanitized
must_fail 'a fuzzer' 'not ok netem' fuzzer
must_fail torture 'not ok - planted_red.sh' \
    build/venv/bin/python tests/torture/torture.py tests/failsafe/planted_red.sh
# A table that is always green measures nothing.
must_fail calibrate 'this scale is NOT right' \
    env STEELYARD_NODE="$PWD/tests/failsafe/lying_node.sh" build/venv/bin/steelyard calibrate \
    --scheduler local --only 'run: a little of all' --dir "$scratch"
