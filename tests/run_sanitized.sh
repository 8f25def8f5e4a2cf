#!/bin/bash
# The sanitized C tests, as many at once as there are processors: tests/run_sanitized.sh PLUGIN PROGRAM…
# A report of any of their processes turns one red: those of the plugin's children reach no terminal.
set -uo pipefail

readonly plugin=$1
shift

if (($# > 1)); then
    printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" "$0" "$plugin"
    exit
fi

log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
export ASAN_OPTIONS=detect_leaks=1:handle_abort=1:log_path=$log/report
export UBSAN_OPTIONS=print_stacktrace=1:log_path=$log/report LSAN_OPTIONS=print_suppressions=0
"$1" "$plugin" >"$log/output" 2>&1
code=$?
if ((code)) || compgen -G "$log/report*" >/dev/null; then
    cat "$log"/*
    printf '%s failed with code %d\n' "${1##*/}" "$code"
    exit 1
fi
printf '%s: %s ok\n' "${1##*/}" "$(grep -c '^ok' "$log/output")"
