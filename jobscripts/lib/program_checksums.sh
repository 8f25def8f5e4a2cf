#!/bin/bash
# Checksums of the programs and libraries that a run used, in ATTEMPT/environment.CLIENT. Part of
# steelyard.sh; for benchmarks to call.

# Write programs, the libraries they load and their checksums, one JSON line each. The number of
# processes does not depend on the number of files: on a virtual node each costs milliseconds.
sy_environment() { # <program>...
    local path sum
    local -a paths
    local -A kinds=()
    sy_lines paths type -P -- "$@"
    ((${#paths[@]} > 0)) || return 0
    while read -r path; do
        [[ -z $path ]] || kinds[$path]=library
    done <<<"$(ldd "${paths[@]}" 2>/dev/null | sed -nE 's/.*=> (\/[^ ]+) .*/\1/p')"
    while read -r path; do
        kinds[$path]=program
    done <<<"$(readlink -f -- "${paths[@]}")"
    sha256sum -- "${!kinds[@]}" 2>/dev/null | while read -r sum path; do
        printf '{"kind":"%s","path":' "${kinds[$path]:-library}"
        sy_json_string "$path"
        printf ',"sha256":"%s"}\n' "$sum"
    done | sort >>"$SY_ATTEMPT_DIR/environment.$SY_CLIENT"
}
