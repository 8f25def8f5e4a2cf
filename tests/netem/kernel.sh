#!/bin/bash
# A newer kernel as a program (User Mode Linux), out of another release of Debian than this machine's,
# with the C library that it needs. Usage: tests/netem/kernel.sh SUITE DIR; into DIR: linux.uml,
# modules, lib. Nothing of this machine's own package lists is touched.
set -euo pipefail

suite=$1 dir=$2
[[ -x $dir/linux.uml ]] && exit
work=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists/partial,cache/archives/partial,root}
cat >"$work/suite.sources" <<END
Types: deb
URIs: http://deb.debian.org/debian
Suites: $suite
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
apt=(apt-get -qq -o Dir::Etc::sourceparts=- -o "Dir::Etc::sourcelist=$work/suite.sources"
    -o "Dir::State::lists=$work/lists" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
"${apt[@]}" update
(cd "$work" && "${apt[@]}" download "user-mode-linux/$suite" "libc6/$suite")
for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$work/root"
done
mkdir -p "$dir"
mv "$work/root/usr/lib/uml/modules" "$dir/modules"
mkdir -p "$dir/lib"
find "$work/root" -path '*x86_64-linux-gnu/*.so.*' -maxdepth 5 -type f -exec mv -t "$dir/lib" {} +
mv "$work/root/usr/bin/linux.uml" "$dir/linux.uml"
