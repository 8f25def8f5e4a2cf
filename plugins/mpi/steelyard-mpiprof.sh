#!/bin/bash
# steelyard-mpiprof FILE PROGRAM ARGUMENT…: the MPI program with the profiler preloaded; rank 0
# writes FILE when the program ends (docs/mpi-profile.md). Started by mpirun or srun, once per rank.
set -u
usage='usage: mpirun -np N steelyard-mpiprof FILE.json PROGRAM ARGUMENT...'
case ${1:-} in
-h | --help)
    printf '%s\n\nThe time in MPI, by call, and the sizes of messages, of a program left as it is.\n' "$usage"
    printf '\nSTEELYARD_MPIPROF_LIB: the library built for another MPI. docs/mpi-profile.md\n'
    exit 0
    ;;
esac
if (($# < 2)); then
    printf '%s\n' "$usage" >&2
    exit 2
fi
own_folder=${BASH_SOURCE[0]%/*}
for library in ${STEELYARD_MPIPROF_LIB:+"$STEELYARD_MPIPROF_LIB"} "$own_folder/../lib/libsteelyard-mpiprof.so" \
    "$own_folder/libsteelyard-mpiprof.so"; do
    if [[ -f $library ]]; then
        export STEELYARD_MPIPROF_OUT=$1
        export LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}
        shift
        exec "$@"
    fi
done
printf 'steelyard-mpiprof: libsteelyard-mpiprof.so is missing beside %s: build it with make all (needs mpicc: Debian package libopenmpi-dev)\n' "$own_folder" >&2
exit 3
