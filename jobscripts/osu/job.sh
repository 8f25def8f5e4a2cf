# shellcheck shell=bash
# OSU micro-benchmarks or Intel MPI Benchmarks, the user's own programs: all ranks of a job at once, as often
# as `repetitions` requests. Each repetition prints one table.

sy_find_program() {
    sy_program osu "$SY_PARAM_PROGRAM" 'give program = "/path/to/osu_latency", or of another program, or of IMB-MPI1'
}

sy_osu_exponent() { # BYTES: prints N of BYTES = 2^N; fails when BYTES is no power of two
    local bytes=$1 exponent
    for ((exponent = 0; bytes > 1 && bytes % 2 == 0; exponent++)); do
        ((bytes /= 2))
    done
    ((bytes == 1)) && printf '%d\n' "$exponent"
}

sy_osu_options() { # PROGRAM: sets `options` of the caller
    local first last
    local -a more
    if ! first=$(sy_osu_exponent "$SY_PARAM_SMALLEST") || ! last=$(sy_osu_exponent "$SY_PARAM_LARGEST") ||
        ((first > last)); then
        sy_log "smallest is $SY_PARAM_SMALLEST bytes and largest $SY_PARAM_LARGEST bytes; give two powers of two, the smaller one first"
        return 2
    fi
    read -r -a more <<<"$SY_PARAM_OPTIONS"
    if [[ $SY_PARAM_TEST ]]; then
        options=(-npmin "$SY_PARAM_RANKS" -msglog "$first:$last" "${more[@]}" "$SY_PARAM_TEST")
    elif [[ ${1##*/} == *barrier ]]; then
        options=("${more[@]}") # it has no messages and refuses -m
    else
        options=(-m "$SY_PARAM_SMALLEST:$SY_PARAM_LARGEST" "${more[@]}")
    fi
}

sy_client() {
    local program repetition
    local -a options
    program=$(sy_find_program) || return
    sy_osu_options "$program" || return
    sy_without_scheduler
    for ((repetition = 0; repetition < SY_PARAM_REPETITIONS; repetition++)); do
        sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "$program" "${options[@]}" || return
    done
}
