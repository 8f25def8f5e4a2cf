# shellcheck shell=bash
# One client of the NAS Parallel Benchmarks: all ranks on this node. Steelyard's programs, which
# STEELYARD_NPB may name, unless `folder` names NASA's.

# Runs before the measured time: records the programs and their versions.
sy_setup() {
    local program
    program=$(sy_find_program) || return
    if [[ -z $SY_PARAM_FOLDER ]]; then # steelyard-npb is a script that executes the kernel of its folder
        program=$(readlink -f -- "$program")
        program=${program%/*}/npb-$SY_PARAM_KERNEL
    fi
    sy_environment "$program" "$SY_PARAM_MPIRUN"
}

sy_find_program() {
    sy_npb_check_implementation || return
    if [[ -n $SY_PARAM_FOLDER ]]; then
        sy_npb_find_nasa
    else
        sy_program steelyard-npb "${STEELYARD_NPB:-}" \
            'build it with make all (needs mpicc: Debian package libopenmpi-dev), and set STEELYARD_NPB or PATH'
    fi
}

sy_client() {
    local program
    local -a command profiler
    program=$(sy_find_program) || return
    command=("$program")
    if [[ -z $SY_PARAM_FOLDER ]]; then
        command+=("$SY_PARAM_KERNEL" --class "$SY_PARAM_CLASS"
            --json "$SY_ATTEMPT_DIR/npb.$SY_CLIENT.json")
    fi
    sy_find_profiler || return
    sy_without_scheduler
    sy_mpi_run "$SY_PARAM_RANKS" "$SY_PARAM_MPIRUN" "${profiler[@]}" "${command[@]}" || return
    sy_tag_npb
}

# Check that `implementation` and `folder` agree.
sy_npb_check_implementation() {
    case $SY_PARAM_IMPLEMENTATION:$SY_PARAM_FOLDER in
    nasa:)
        sy_log 'implementation = "nasa" needs folder = "/path", where cg.A.x or cg.A.2 are: NASA'"'"'s programs are in no package'
        return 2
        ;;
    steelyard:?*)
        sy_log "implementation = \"steelyard\" runs ours, folder = \"$SY_PARAM_FOLDER\" NASA's programs: give one of them"
        return 2
        ;;
    esac
}

# Tag the version and the vector instructions in use: results depend on both.
sy_tag_npb() {
    local key value
    while IFS='=' read -r key value; do
        [[ -z $key ]] || sy_tag "$key" "$value"
    done <<<"$(sed -nE -e 's/^ Version +=[[:space:]]*(.*[^[:space:]])[[:space:]]*$/npb.version=\1/p' \
        -e 's/^ Vectors +=[[:space:]]*(.*[^[:space:]])[[:space:]]*$/npb.vectors=\1/p' \
        "$SY_ATTEMPT_DIR/out.$SY_CLIENT")"
}

# Print NASA's program: cg.A.x of NPB 3.4; cg.A.2 of 3.3, which fixes the ranks when it is built.
sy_npb_find_nasa() {
    local base=$SY_PARAM_FOLDER/$SY_PARAM_KERNEL.$SY_PARAM_CLASS
    if [[ -x $base.$SY_PARAM_RANKS ]]; then
        printf '%s' "$base.$SY_PARAM_RANKS"
    elif [[ -x $base.x ]]; then
        printf '%s' "$base.x"
    else
        sy_log "neither $base.x nor $base.$SY_PARAM_RANKS is a program on $HOSTNAME: build it with NPB's make $SY_PARAM_KERNEL CLASS=$SY_PARAM_CLASS"
        return 3
    fi
}
