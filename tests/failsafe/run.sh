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

c_test() {
    gcc -Itests/c -o build/test/planted tests/failsafe/planted.c && tests/run_c.sh build/test/planted
}

pytest() { # OPTION…
    build/venv/bin/python -P -m pytest -q -c tests/failsafe/pytest.ini --confcutdir=tests "$@"
}

# As `make test` runs its groups, some at once; what this make tells its children is not for that one.
groups() { # GROUP…
    env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -f Makefile -f tests/failsafe/planted.mk \
        -j2 -Otarget groups TEST_GROUPS="$*"
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
    echo '#include "sampler/child.h"' >"$scratch/tree-c/plugins/node/base/planted.c"
    pytest -k 'includes_only' "$scratch/tree-c/tests/unit/project/test_layers_c.py"
}

# The guard of tests/unit, in a copy that has one test more.
process_in_units() {
    mkdir -p "$scratch/units/tests"
    cp -r tests/unit tests/record_netem.py "$scratch/units/tests"
    cp tests/failsafe/planted_process.py "$scratch/units/tests/unit"
    pytest --rootdir "$scratch/units" "$scratch/units/tests/unit/planted_process.py"
}

# The runner of the containers' tests; of Docker there need be none.
containers() { # FILE.bats
    CLUSTERS=2 PATH=$PWD/tests/failsafe/engine:$PATH tests/docker/cluster.sh test host "$1"
}

# As where Docker is not there.
no_engine() {
    DOCKER_HOST=unix://$scratch/none groups check-docker-host
}

# A program that is red by itself, to each of the runners of sanitized programs.
fuzzer() {
    cp tests/failsafe/planted_red.sh "$scratch/fuzz_netem"
    build/venv/bin/python -P tests/fuzz/fuzz.py --seconds 1 "$scratch/fuzz_netem"
}

# A source is looked at again when its header has changed.
lint() { # TARGET
    local -r at=build/test/planted_lint
    local -a check=(env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -f Makefile -f tests/lint.mk
        LINT_SRC="$at.c" CROSS_SRC="$at.c" "$1")
    echo 'int planted(void);' >$at.h
    printf '#include "planted_lint.h"\nint planted(void) { return 0; }\n' >$at.c
    "${check[@]}" || return 0 # not by the planted failure
    echo 'int nobody_calls_me();' >>$at.h
    "${check[@]}"
}

mkdir -p build/test build/sanitized
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
must_fail layers 'analysis/stats/planted.py:1: steelyard.analysis.report.page' layers
must_fail layers_c 'plugins/node/base/planted.c:1: sampler/child.h' layers_c
must_fail 'lint-c of a header that changed' nobody_calls_me lint lint-c
must_fail 'lint-cross of a header that changed' nobody_calls_me lint lint-cross
must_fail pytest '1 failed' pytest tests/failsafe/planted_pytest.py
must_fail 'pytest with workers' '1 failed' pytest -n 2 --dist worksteal tests/failsafe/planted_pytest.py
must_fail 'pytest that skips everything' 'every test was skipped' pytest tests/failsafe/planted_skips.py
must_fail 'pytest with workers that skips everything' 'every test was skipped' \
    pytest -n 2 --dist worksteal tests/failsafe/planted_skips.py
must_fail 'a unit test that starts a process' 'file this test under tests/system' process_in_units
must_fail bats 'not ok 1 planted' tests/run_bats.sh tests/failsafe/planted.bats
must_fail 'bats that skips everything' 'no test ran to its end' \
    tests/run_bats.sh tests/failsafe/planted_skips.bats
must_fail tap '^not ok 1' c_test
must_fail 'make test, of two groups at once' 'planted red' groups planted-green planted-red
must_fail 'containers of two clusters' 'not ok 1 planted' containers tests/failsafe/planted.bats
must_fail 'containers that skip everything' 'no test ran to its end' \
    containers tests/failsafe/planted_skips.bats
must_tell 'containers that are green' 'ok 1 planted' containers tests/failsafe/planted_green.bats
must_tell 'make test, without Docker,' 'not run: no Docker engine answers' no_engine
must_fail 'a sanitized test' 'failed with code 1' \
    tests/run_sanitized.sh no-plugin tests/failsafe/planted_red.sh
must_fail 'a fuzzer' 'not ok netem' fuzzer
must_fail torture 'not ok - planted_red.sh' \
    build/venv/bin/python tests/torture/torture.py tests/failsafe/planted_red.sh
# A table that is always green weighs nothing.
must_fail calibrate 'this scale is NOT right' \
    env STEELYARD_NODE="$PWD/tests/failsafe/lying_node.sh" build/venv/bin/steelyard calibrate \
    --scheduler local --only 'run: a little of all' --dir "$scratch"
