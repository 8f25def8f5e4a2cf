#!/bin/bash
# RPM packages of the C programs in build/rpm: `make package KIND=rpm` calls it. The plugin's package is for
# the Slurm of the installed headers, and is skipped without headers (Torque, OpenPBS).
# On a system without RPM packages (Debian) the packages have no dependencies.
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/../.."
version=$(cat VERSION)
release=$(packaging/dist/slurm_release.sh 2>/dev/null) || echo "note: no headers of Slurm: no package steelyard-slurm"
top=$(pwd)/build/rpm
readonly version release top
SOURCE_DATE_EPOCH=$(packaging/dist/epoch.sh)
export SOURCE_DATE_EPOCH

type -P rpmbuild >/dev/null || {
    echo "packaging/rpm/rpm.sh: no rpmbuild (Debian: apt-get install rpm; RHEL: rpm-build)" >&2
    exit 3
}
needs='' requires=''
if rpm -q rpm >/dev/null 2>&1; then
    needs="BuildRequires: gcc meson ninja-build pkgconf-pkg-config jansson-devel libmnl-devel${release:+ slurm-devel}"
    requires="Requires: slurm >= $release"
fi

rm -rf "$top"
packaging/dist/copy_sources.sh "$top/steelyard-$version"
mkdir -p "$top"/{SOURCES,SPECS}
tar -C "$top" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    -czf "$top/SOURCES/steelyard-$version.tar.gz" "steelyard-$version"
rm -rf "$top/steelyard-$version"
sed -e "s|@VERSION@|$version|g" -e "s|@SLURM@|$release|g" \
    -e "s|@BUILD_REQUIRES@|$needs|" -e "s|@SLURM_REQUIRES@|$requires|" \
    packaging/rpm/steelyard.spec.in >"$top/SPECS/steelyard.spec"
rpmbuild -bb --quiet --define "_topdir $top" --define 'debug_package %{nil}' \
    --define '_sharedstatedir /var/lib' --define '_prefix /usr' "$top/SPECS/steelyard.spec" >"$top/build.log" 2>&1 || {
    tail -n 30 "$top/build.log" >&2
    echo "packaging/rpm/rpm.sh: rpmbuild failed: all it said is in build/rpm/build.log" >&2
    exit 1
}
mv "$top"/RPMS/*/*.rpm "$top/"
rm -rf "$top"/{BUILD,BUILDROOT,RPMS,SRPMS,SOURCES}
ls "$top"/*.rpm
