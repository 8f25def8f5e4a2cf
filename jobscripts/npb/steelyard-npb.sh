#!/bin/bash
# One name for all kernels, by which submit and doctor find them.
set -u
own_folder=${BASH_SOURCE[0]%/*}
kernel=${1:-}
if [[ $kernel == --help ]]; then
    printf 'usage: mpirun -np N steelyard-npb KERNEL ARGUMENT…\n\nA NAS Parallel Benchmark: the program npb-KERNEL beside this one (docs/npb.md).\n'
    exit 0
fi
if [[ ! $kernel =~ ^[a-z]{2}$ || ! -x $own_folder/npb-$kernel ]]; then
    found=("$own_folder"/npb-??)
    printf "steelyard-npb: kernel '%s': expected one of %s\n" "$kernel" "${found[*]##*/npb-}" >&2
    exit 2
fi
shift
exec "$own_folder/npb-$kernel" "$@"
