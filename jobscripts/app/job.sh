# shellcheck shell=bash
# shellcheck disable=SC2154 # SY_WORDS_ENV is of run.sh
# One client of a user's command. Its output is out.CLIENT; its times are in ATTEMPT/app.CLIENT, a line
# for each iteration: exit code, start and end (µs of the wall clock), uptimes at both (µs, or -).

sy_client() {
    local iteration
    : >"$SY_ATTEMPT_DIR/app.$SY_CLIENT" || return
    for ((iteration = 1; iteration <= SY_PARAM_ITERATIONS; iteration++)); do
        sy_run_command "$((iteration > 1 ? iteration : 0))" || return
    done
}

# Record all programs that the command names by absolute path, or the first that PATH finds. The command
# is split at blanks: a program in a variable, or after a `cd`, is not found.
sy_after() {
    local word path
    local -a words named=() found=()
    ! sy_has_launcher || return 0 # in a container: launcher_image_id names its image
    [[ -z ${SY_WORDS_ENV[*]-} ]] || export "${SY_WORDS_ENV[@]}"
    read -r -a words <<<"${SY_PARAM_COMMAND//[\"\'();&|]/ }"
    for word in "${words[@]}"; do
        path=$(type -P -- "$word") || continue
        [[ $word == /* ]] && named+=("$path") || found+=("$path")
    done
    found=("${named[@]}" "${found[@]::1}")
    ((${#found[@]} > 0)) || return 0
    sy_environment "${found[@]}"
    sy_tag_app "${found[0]}"
    for path in "${found[@]}"; do
        [[ ${path##*/} != mpirun && ${path##*/} != mpiexec ]] ||
            sy_tag_nonempty mpirun.version "$(sy_mpi_version "$(sy_app_read_output "$(printf %q "$path") --version")")"
    done
}

sy_tag_app() { # <program>
    local path sum version=$SY_PARAM_VERSION
    path=$(readlink -f -- "$1") && sum=$(sha256sum <"$path") || return 0
    sy_tag app.program "$path"
    sy_tag app.program_bytes "$(stat -c %s -- "$path")"
    sy_tag app.program_sha256 "${sum%% *}"
    [[ $version != -* ]] || version="$(printf %q "$1") $version"
    [[ -z $version ]] || sy_tag_nonempty app.version "$(sy_app_read_output "$version" | sed -n '/[^[:space:]]/{p;q}')"
}

# Print a command line's output, the first 64 KiB. The job's end waits for it, so the limit is 2 s: the
# program has just run and is in the page cache. Its background processes are killed, too.
sy_app_read_output() { # <command line>
    # shellcheck disable=SC2016 # $1 is the inner shell's
    timeout -s KILL 2 "$BASH" -c '"$BASH" -c "$1" 2>&1 </dev/null | head -c 65536' "$BASH" "$1"
}

sy_run_command() { # <number of the iteration, 0: the first>
    local code start end start_up end_up suffix=.$1
    local -a repositories
    read -r -a repositories <<<"$SY_PARAM_CVMFS"
    sy_save_cvmfs_counters "before${suffix%.0}" ${repositories[@]+"${repositories[@]}"} || return
    sy_read_uptime start_up
    start=${EPOCHREALTIME//[^0-9]/}
    (
        [[ -z ${SY_WORDS_ENV[*]-} ]] || export "${SY_WORDS_ENV[@]}"
        sy_measured "$BASH" -c "$SY_PARAM_COMMAND"
    ) </dev/null
    code=$?
    end=${EPOCHREALTIME//[^0-9]/}
    sy_read_uptime end_up
    printf '%d %s %s %s %s\n' "$code" "$start" "$end" "${start_up:--}" "${end_up:--}" \
        >>"$SY_ATTEMPT_DIR/app.$SY_CLIENT" || return
    sy_save_cvmfs_counters "after${suffix%.0}" ${repositories[@]+"${repositories[@]}"} || return
    return "$code"
}
