# shellcheck shell=bash
# One client of HPL: p × q ranks on this node, in the fresh scratch folder (hpcc appends to its
# output file). stdout is the one document that parse.py reads; all else goes to stderr.

sy_client() {
    local program code input=hpccinf.txt
    local -r ranks=$((SY_PARAM_P * SY_PARAM_Q))
    [[ -z $SY_PARAM_XHPL ]] || input=HPL.dat
    program=$(sy_program "${SY_PARAM_XHPL:-hpcc}" "$SY_PARAM_XHPL" \
        'install the Debian package hpcc, or give xhpl = "/path/to/xhpl"') || return
    sy_hpl_input >"$input" || return
    sy_without_scheduler
    export OPENBLAS_NUM_THREADS=$SY_PARAM_THREADS OMP_NUM_THREADS=$SY_PARAM_THREADS \
        MKL_NUM_THREADS=$SY_PARAM_THREADS BLIS_NUM_THREADS=$SY_PARAM_THREADS
    if [[ -n $SY_PARAM_XHPL ]]; then
        sy_mpi_run "$ranks" "$SY_PARAM_MPIRUN" "$program"
        return
    fi
    sy_mpi_run "$ranks" "$SY_PARAM_MPIRUN" "$program" >&2
    code=$?
    cat hpccoutf.txt || return
    return "$code"
}

# The 31 lines that HPL.dat and hpccinf.txt share. Past n, nb, p, q and the threshold they are the
# values of the file that HPL itself brings. hpcc reads three more lines and writes to its own file.
sy_hpl_input() {
    cat <<LINES
HPLinpack benchmark input file
made by Steelyard
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
$SY_PARAM_N  Ns
1            # of NBs
$SY_PARAM_NB NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
$SY_PARAM_P  Ps
$SY_PARAM_Q  Qs
$SY_PARAM_THRESHOLD threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### hpcc ignores this line, and xhpl whatever follows
0            additional problem sizes for PTRANS
1000         values of N
0            additional blocking sizes for PTRANS
64           values of NB
LINES
}
