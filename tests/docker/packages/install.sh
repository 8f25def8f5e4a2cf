#!/bin/sh
# The packages of one list beside this file: install.sh run|build. Nothing is fetched where the
# base image has them all.
set -eu
# No service starts while it is installed; mirrors that stand still have lists of some days ago.
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
list=$(cat "${0%/*}/$1.txt")
# shellcheck disable=SC2086 # a word each
dpkg-query -W -f '${db:Status-Status}\n' $list 2>/dev/null | grep -cx installed | grep -qx "$(echo "$list" | wc -l)" && exit
apt-get -o Acquire::Check-Valid-Until=false update -q
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $list
rm -rf /var/lib/apt/lists/*
