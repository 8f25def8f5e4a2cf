#!/bin/sh
# What the image has beside `make install-slurm install-programs`: the commands of users, which the
# suite's own Python runs, Slurm's configuration, the entry point. assemble.sh CHECKOUT ROOT
set -eu
checkout=$1 root=$2
library=$root/usr/local/share/steelyard/steelyard
mkdir -p "$library" "$root/usr/local/bin" "$root/etc"
cd "$checkout"
cp -r analysis facts jobscripts wrappers "$library"
cd tests/docker
cp steelyard "$root/usr/local/bin"
cp -r etc "$root/etc/slurm"
cp start.sh "$root"
