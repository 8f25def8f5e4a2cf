#!/bin/bash
# Debian packages of this checkout for the Slurm whose headers are here: `make package KIND=deb` calls it.
# build/deb/*.deb; the same bytes from the same commit and the same build packages: SOURCE_DATE_EPOCH,
# else the last commit's time, is the time of all files. Lintian's errors and warnings are failures.
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/../.."
version=$(cat VERSION)
release=$(packaging/dist/slurm_release.sh)
readonly version release built=build/deb/source
# Builders of packages for others set their name as for Debian's other tools.
readonly maintainer="${DEBFULLNAME:-Steelyard} <${DEBEMAIL:-steelyard@example.net}>"
SOURCE_DATE_EPOCH=$(packaging/dist/epoch.sh)
export SOURCE_DATE_EPOCH

# Print an upper bound of this release's versions: the next release's number is unknown, but the next
# month's is not above it.
next_month() { # 22.05
    printf '%d.%02d' "${1%.*}" "$((10#${1#*.} + 1))"
}

rm -rf build/deb
packaging/dist/copy_sources.sh "$built"
cp -r packaging/deb "$built/debian"
rm "$built/debian/deb.sh"
sed -e "s|@SLURM@|$release|g" -e "s|@SLURM_NEXT@|$(next_month "$release")~|g" -e "s|@MAINTAINER@|$maintainer|" \
    "$built/debian/control.in" >"$built/debian/control"
rm "$built/debian/control.in"
cat >"$built/debian/changelog" <<END
steelyard ($version) unstable; urgency=medium

  * Built from a checkout; its CHANGELOG.md lists the changes.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
(cd "$built" && dpkg-buildpackage -us -uc -b >../build.log 2>&1) || {
    tail -n 30 build/deb/build.log >&2
    echo "packaging/deb/deb.sh: dpkg-buildpackage failed: all it said is in build/deb/build.log" >&2
    exit 1
}
lintian --allow-root --fail-on error,warning build/deb/*.changes
rm -rf "$built" build/deb/*-dbgsym_*.deb
ls build/deb/*.deb
