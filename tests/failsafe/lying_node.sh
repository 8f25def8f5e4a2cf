#!/bin/bash
# A steelyard-node that writes one digit too many into its records: run by tests/failsafe/run.sh
# only; `steelyard calibrate` must call it wrong.
set -uo pipefail

"${BASH_SOURCE[0]%/*}/../../build/bin/steelyard-node" "$@"
code=$?
for word in "$@"; do
    case $word in
    --record-dir=*) find "${word#*=}" -name '*.json' -exec sed -i 's/"wchar_bytes": /&1/' {} + ;;
    esac
done
exit $code
