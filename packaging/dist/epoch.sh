#!/bin/bash
# Print the time of all packed files: SOURCE_DATE_EPOCH, else the last commit's. Without git, as in a
# source tar, it is the time of VERSION, which the tar has set.
set -euo pipefail

root=${BASH_SOURCE[0]%/*}/../..
echo "${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || stat -c %Y "$root/VERSION")}"
