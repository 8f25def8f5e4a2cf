#!/bin/bash
# Whose each function of a program is: functions.sh PROGRAM; a line for each, its address and its size
# behind t (a test's) or p (ours).
set -euo pipefail

nm -S -l --defined-only "$1" | awk -F'\t' '
    $2 ~ "/tests/c/" { split($1, f, " "); print "t", f[1], f[2] }
    $2 ~ "/plugins/" { split($1, f, " "); print "p", f[1], f[2] }'
