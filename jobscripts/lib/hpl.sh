#!/bin/bash
# HPL's input file, which hpcc reads too, and the ranks' threads. Part of steelyard.sh; for the
# benchmarks hpl and hpcc, whose parameters are those of hpl.toml.
#
# A copy of the input is kept as ATTEMPT/hpl.CLIENT.dat, with which the parser compares what was solved.
# With `memory` the order n is the largest multiple of nb whose matrix takes that share of the memory that
# the job, or its container, may use on all nodes of the ranks. BLAS libraries get `threads` threads a rank;
# which library a program loads is a tag.

# Print the 31 lines that HPL.dat and hpccinf.txt share, and three more that hpcc reads. A parameter
# with several values gives a line of them: HPL solves a system for each.
sy_hpl_print_input() {
    local n
    n=$(sy_hpl_order) || return
    cat <<LINES
HPLinpack benchmark input file
made by Steelyard
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
$n  Ns
$(sy_hpl_count "$SY_PARAM_NB") # of NBs
$SY_PARAM_NB NBs
$(sy_word_index "$SY_PARAM_PMAP" row column) PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
$SY_PARAM_P  Ps
$SY_PARAM_Q  Qs
$SY_PARAM_THRESHOLD threshold
$(sy_hpl_count "$SY_PARAM_PFACT") # of panel fact
$(sy_word_indices "$SY_PARAM_PFACT" left crout right) PFACTs (0=left, 1=Crout, 2=Right)
$(sy_hpl_count "$SY_PARAM_NBMIN") # of recursive stopping criterium
$SY_PARAM_NBMIN NBMINs (>= 1)
$(sy_hpl_count "$SY_PARAM_NDIV") # of panels in recursion
$SY_PARAM_NDIV NDIVs
$(sy_hpl_count "$SY_PARAM_RFACT") # of recursive panel fact.
$(sy_word_indices "$SY_PARAM_RFACT" left crout right) RFACTs (0=left, 1=Crout, 2=Right)
$(sy_hpl_count "$SY_PARAM_BCAST") # of broadcast
$(sy_word_indices "$SY_PARAM_BCAST" 1ring 1ringM 2ring 2ringM long longM) BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
$(sy_hpl_count "$SY_PARAM_DEPTH") # of lookahead depth
$SY_PARAM_DEPTH DEPTHs (>=0)
$(sy_word_index "$SY_PARAM_SWAP" bin-exch long mix) SWAP (0=bin-exch,1=long,2=mix)
$SY_PARAM_SWAP_THRESHOLD swapping threshold
$(sy_word_index "$SY_PARAM_L1" transposed no-transposed) L1 in (0=transposed,1=no-transposed) form
$(sy_word_index "$SY_PARAM_U" transposed no-transposed) U  in (0=transposed,1=no-transposed) form
$(sy_word_index "$SY_PARAM_EQUILIBRATION" false true) Equilibration (0=no,1=yes)
$SY_PARAM_ALIGNMENT memory alignment in double (> 0)
##### hpcc ignores this line, and xhpl whatever follows
0            additional problem sizes for PTRANS
1000         values of N
0            additional blocking sizes for PTRANS
64           values of NB
LINES
}

# Write HPL's input, with a copy for the parser.
sy_hpl_write_input() { # <file>
    sy_hpl_print_input >"$1" || return
    cp -- "$1" "$SY_ATTEMPT_DIR/hpl.$SY_CLIENT.dat"
}

# Run hpcc in a fresh folder (it appends to its output file) and print that file; hpcc's own output goes
# to stderr.
sy_hpcc_run() { # <program and what measures it>...
    local code
    sy_mpi_run "$((SY_PARAM_P * SY_PARAM_Q))" "$SY_PARAM_MPIRUN" "$@" >&2
    code=$?
    [[ -e hpccoutf.txt ]] || ((code == 0)) || return "$code" # its stderr has the reason
    cat hpccoutf.txt || return
    return "$code"
}

# Print the index of a word among others, counted from 0.
sy_word_index() { # <word> <words>...
    local -r word=$1
    local n=0
    shift
    while [[ $# -gt 0 && $1 != "$word" ]]; do
        n=$((n + 1))
        shift
    done
    printf '%d' "$n"
}

# Print the indices of several words in one text, with spaces between.
sy_word_indices() { # <text> <words>...
    local word
    local -a found=()
    for word in $1; do
        found+=("$(sy_word_index "$word" "${@:2}")")
    done
    printf '%s' "${found[*]}"
}

# Print how many values a text has.
sy_hpl_count() { # <text>
    local -a words
    read -r -a words <<<"$1"
    printf '%-12d' "${#words[@]}"
}

# Print n, or the largest multiple of nb whose matrix (8 n² bytes) takes the share `memory` of the
# memory of all nodes that the ranks are on.
sy_hpl_order() {
    local bytes count=1 n
    if [[ -z $SY_PARAM_MEMORY ]]; then
        printf '%d' "$SY_PARAM_N"
        return
    fi
    ((SY_CLIENTS > 1)) || count=$(sy_nodes | wc -l)
    bytes=$(sy_memory_bytes) || return
    n=$(awk -v b="$bytes" -v k="$count" -v share="${SY_PARAM_MEMORY%\%}" -v nb="$SY_PARAM_NB" \
        'BEGIN { print int(sqrt(b * k * share / 100 / 8) / nb) * nb }')
    if ((n < 1)); then
        sy_log "$SY_PARAM_MEMORY of $bytes bytes do not hold one block of $SY_PARAM_NB"
        return 2
    fi
    printf '%d' "$n"
}

# Print how much memory of this node a client may use, in bytes: the node's, or the limit of the job or
# the container; clients on one node share it.
sy_memory_bytes() {
    local word kib given sharers=${SY_SHARERS:-$(sy_scheduler clients_per_node)}
    while read -r word kib _; do
        [[ $word != MemTotal: ]] || break
    done <"${SY_MEMINFO:-/proc/meminfo}"
    [[ $word == MemTotal: ]] || {
        sy_log 'the memory of this node is not known: no MemTotal in /proc/meminfo'
        return 1
    }
    # A local run may be in a job, too.
    for given in $(sy_every_scheduler memory_kib); do
        ((given >= kib)) || kib=$given
    done
    kib=$((kib / sharers))
    if ((${SY_LAUNCHER_MEMORY_BYTES:-0} > 0 && SY_LAUNCHER_MEMORY_BYTES / 1024 < kib)); then
        kib=$((SY_LAUNCHER_MEMORY_BYTES / 1024))
    fi
    printf '%d' $((kib * 1024))
}

sy_hpl_set_threads() {
    export OPENBLAS_NUM_THREADS=$SY_PARAM_THREADS OMP_NUM_THREADS=$SY_PARAM_THREADS \
        MKL_NUM_THREADS=$SY_PARAM_THREADS BLIS_NUM_THREADS=$SY_PARAM_THREADS
}

# Tag blas: the BLAS library that a program loads, with links resolved; `none` when it loads none of a
# known name, as a statically linked program.
sy_tag_blas() { # <program>
    local path
    path=$(ldd -- "$1" 2>/dev/null |
        sed -nE 's/^[[:space:]]*lib(blas|openblas|mkl_rt|mkl_core|blis|atlas|satlas|tatlas|flexiblas|armpl)[^ ]* => ([^ ]+) .*/\2/p' |
        head -n 1)
    [[ -n $path ]] || {
        sy_tag blas none
        return
    }
    sy_tag blas "$(readlink -f -- "$path")"
}
