#!/bin/bash
# The C parts once more, by clang with AddressSanitizer and UBSan, in build/sanitized: tests/run_sanitized.sh
#   tests              the C tests, spoilt input included
#   fuzz [SECONDS]     libFuzzer over every parser of what comes from outside, 60 seconds in all
#   torture [SECONDS]  every call that may fail made to fail, for 120 seconds; all: each of them
#   npb                the NAS Parallel Benchmarks, class S
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/.."
readonly folder=build/sanitized

build() { # TARGET
    [[ -e $folder/build.ninja ]] || CC=clang meson setup "$folder" -Dtorture=true -Dmpi=disabled \
        -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1
    ninja -C "$folder" "$1"
}

# What was built of sources: their names, in the folder of tests.
programs() { # SOURCE…
    local source
    for source; do
        source=${source##*/}
        echo "$folder/tests/${source%.c}"
    done
}

# A report of any of a program's processes turns it red: those of the plugin's children reach no terminal.
one() { # PROGRAM ARGUMENT…: as `meson test` calls it
    local log code=0
    log=$(mktemp -d)
    export ASAN_OPTIONS=detect_leaks=1:handle_abort=1:log_path=$log/report
    export UBSAN_OPTIONS=print_stacktrace=1:log_path=$log/report LSAN_OPTIONS=print_suppressions=0
    "$@" || code=$?
    if compgen -G "$log/report*" >/dev/null; then
        cat "$log"/* >&2
        code=1
    fi
    rm -rf "$log"
    exit "$code"
}

case ${1-} in
tests)
    build torture-programs
    meson test -C "$folder" --no-rebuild --print-errorlogs --wrapper "$PWD/tests/run_sanitized.sh one"
    ;;
one) one "${@:2}" ;;
fuzz)
    build fuzzers
    mapfile -t built < <(programs tests/fuzz/fuzz_*.c)
    python3 -P tests/fuzz/fuzz.py --seconds "${2:-60}" "${built[@]}"
    ;;
torture)
    build torture-programs
    mapfile -t built < <(programs tests/c/test_*.c)
    for_long=(--seconds "${2:-120}")
    [[ ${2-} != all ]] || for_long=(--all)
    python3 tests/torture/torture.py "${for_long[@]}" --plugin "$folder/plugins/slurm/spank_steelyard.so" \
        "${built[@]}" "$folder/plugins/node/steelyard-node"
    ;;
npb) tests/run_npb.sh sanitize ;;
*)
    sed -n 2,6p "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
