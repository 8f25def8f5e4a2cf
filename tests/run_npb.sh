#!/bin/bash
# The NAS Parallel Benchmarks (jobscripts/npb), verified: tests/run_npb.sh
#   quick     every kernel, class S, on one rank count
#   check     class S and W, three or four rank counts (20 s)
#   scale     the same on 16 and 64 ranks, three minutes; the CFD kernels' class S has no more than 16
#   mpich     check, with MPICH (Debian: libmpich-dev, mpich)
#   sanitize  class S with the address and undefined-behavior sanitizers
#   plant     nothing is run: the programs that know planted errors (env NPB_PLANT), into build/npb-plant/bin
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/.."
bin=build/bin
# Root and more ranks than cores are normal in tests, and looking for fabrics takes a second a start.
run=(mpirun --allow-run-as-root --oversubscribe --bind-to none --mca mpi_yield_when_idle 1
    --mca pml ob1 --mca btl '^openib,ofi' -np)
readonly kernels='ep is cg mg ft lu bt sp'

build() { # VARIANT OPTION…: programs into build/VARIANT/bin
    exec 9>"build/.$1.lock"
    flock 9
    [[ -e build/$1/meson/build.ninja ]] ||
        meson setup "build/$1/meson" -Dparts=npb -Dplace="build/$1" "${@:2}" >"build/$1.log" ||
        { cat "build/$1.log" && return 1; }
    ninja -C "build/$1/meson" placed >"build/$1.log" || { cat "build/$1.log" && return 1; }
    exec 9>&-
    bin=build/$1/bin
}

one() { # KERNEL CLASS RANKS [OPTION…]
    local output
    output=$("${run[@]}" "$3" "$bin/npb-$1" --class "$2" "${@:4}" 2>&1) || {
        tail -n 60 <<<"$output"
        echo "npb-$1, class $2, $3 ranks ${*:4}: failed" >&2
        exit 1
    }
    echo "npb-$1 $2 $3${4:+ ${*:4}}: $(sed -n 's/^ Mop.s total *= */Mop\/s /p' <<<"$output"), verified"
}

ranks_of() { # KERNEL
    case $1 in
    bt | sp) echo 1 4 9 ;;
    *) echo 1 2 4 8 ;;
    esac
}

each() { # CLASSES
    local kernel class ranks
    for kernel in $kernels; do
        for class in $1; do
            for ranks in $(ranks_of "$kernel"); do one "$kernel" "$class" "$ranks"; done
        done
    done
}

scale() {
    local kernel class
    for kernel in $kernels; do
        for class in S W; do
            one "$kernel" "$class" 16
            case $kernel.$class in
            lu.S | bt.S | sp.S) ;;
            *) one "$kernel" "$class" 64 ;;
            esac
        done
    done
}

case ${1-} in
quick) for kernel in $kernels; do one "$kernel" S 4; done ;;
check) each 'S W' ;;
scale) scale ;;
mpich)
    build npb-mpich -Dmpicc=mpicc.mpich
    run=(mpirun.mpich -np)
    each 'S W'
    ;;
# MPI libraries keep memory to their end, so the kernels count their own; and the choice between
# versions of a loop (ifuncs) happens before the sanitizers are ready.
sanitize)
    build npb-sanitize -Db_sanitize=address,undefined -Doptimization=1 \
        '-Dc_args=-DNPB_NO_CLONES -DNPB_CHECK_LEAKS -fno-sanitize-recover=all'
    export ASAN_OPTIONS=detect_leaks=0
    each S
    ;;
plant) build npb-plant -Doptimization=1 '-Dc_args=-DNPB_PLANT -DNPB_NO_CLONES' ;;
*)
    sed -n 2,8p "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
