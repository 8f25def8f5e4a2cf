#!/bin/bash
# One tar for nodes and login nodes without a compiler: `make package` calls it.
# From the environment: PREFIX, RECORD_DIR, SLURM_INC, and PYTHON, whose pip makes the wheels. All files
# have one time, SOURCE_DATE_EPOCH, else the last commit's.
set -euo pipefail

readonly prefix=${PREFIX:-/usr/local} record_dir=${RECORD_DIR:-/var/lib/steelyard/records}
readonly python=${PYTHON:-python3} headers=${SLURM_INC:-/usr/include}
cd "${BASH_SOURCE[0]%/*}/../.."
here=$(pwd)
readonly here
version=$(cat VERSION)
release=$(packaging/dist/slurm_release.sh "$headers" 2>/dev/null) || echo "note: no headers of Slurm: the tar is without its plugin"
name=steelyard-$version-${release:+slurm$release-}$(uname -m)
readonly version release name stage=build/dist/stage
SOURCE_DATE_EPOCH=$(packaging/dist/epoch.sh)
export SOURCE_DATE_EPOCH

rm -rf "$stage"
mkdir -p "$stage/$name/wheels"

PREFIX="$prefix" RECORD_DIR="$record_dir" DESTDIR="$here/$stage/$name/root" DOC_DIR='' \
    packaging/install.sh packaged >/dev/null
find "$stage/$name/root$prefix" -type f -perm -u+x -exec strip --strip-unneeded {} + 2>/dev/null || :
packaging/parts.sh "$stage/$name/root" "$prefix" "$prefix/share/doc/steelyard" "$record_dir" >"$stage/$name/parts"

# From a copy: pip does not remove its build/lib, whose files the next wheel would contain.
packaging/dist/copy_sources.sh "$stage/source"
"$python" -m pip wheel --disable-pip-version-check -q -w "$stage/$name/wheels" "$stage/source" pip
rm -rf "$stage/source"

python_release=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
sed -e "s|@PREFIX@|$prefix|g" -e "s|@RECORD_DIR@|$record_dir|g" -e "s|@VERSION@|$version|g" \
    -e "s|@PYTHON@|$python_release|g" -e "s|@FOR_SLURM@|${release:+, built for Slurm $release}|g" \
    packaging/dist/install.sh.in >"$stage/$name/install.sh"
chmod 0755 "$stage/$name/install.sh"
chmod -R u=rwX,go=rX "$stage/$name"
tar -C "$stage" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    -c "$name" | gzip -n >"build/dist/$name.tar.gz"
rm -rf "$stage"
echo "build/dist/$name.tar.gz"
