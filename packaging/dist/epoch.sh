#!/bin/bash
# The time of all that is packed: SOURCE_DATE_EPOCH, else the last commit's; of a source tar without git,
# whose files have that time, VERSION's.
set -euo pipefail

root=${BASH_SOURCE[0]%/*}/../..
echo "${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/VERSION")}"
