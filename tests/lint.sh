#!/bin/bash
# What can be said of sources without running them: ruff, mypy, shellcheck, shfmt, clang-format, and gcc
# with every warning an error: tests/lint.sh [--all-compilers | PART…]
#   --all-compilers  clang, too, and gcc for aarch64 and for musl
# PART: python, shell, format, gcc, clang, aarch64, musl
set -euo pipefail

cd "${BASH_SOURCE[0]%/*}/.."
lint=build/lint
readonly lint

python() {
    build/venv/bin/ruff check -q .
    build/venv/bin/ruff format -q --check .
    build/venv/bin/mypy --no-error-summary
}

# None of them has changed since it was green.
unchanged() { # STAMP FILE…
    [[ -e $1 && -z $(find "${@:2}" -newer "$1" -print -quit) ]]
}

# All of them when one has changed: they read each other.
shell() {
    local files
    mapfile -t files < <(git ls-files '*.sh' '*.bats' '*.bash' .ci/run)
    ! unchanged "$lint/shell" "${files[@]}" || return 0
    shfmt -d -i 4 "${files[@]}"
    printf '%s\n' "${files[@]}" | xargs -n 10 -P "$(nproc)" shellcheck -x
    touch "$lint/shell"
}

format() {
    local files
    mapfile -t files < <(git ls-files '*.c' '*.h')
    ! unchanged "$lint/format" "${files[@]}" .clang-format || return 0
    clang-format --dry-run -Werror "${files[@]}"
    touch "$lint/format"
}

# Meson's objects, made again when they, their headers or their flags have changed.
compiler() { # NAME OPTION…
    local -r folder=$lint/$1
    [[ -e $folder/build.ninja ]] ||
        meson setup "$folder" -Dparts=checked -Dwerror=true -Doptimization=0 -Ddebug=false "${@:2}" >"$lint/$1.log" ||
        { cat "$lint/$1.log" && return 1; }
    ninja -C "$folder" >"$lint/$1.log" || { grep -v '^\[' "$lint/$1.log" && return 1; }
}

# Without optimization gcc knows no ranges, and takes many texts for too long.
gcc() { CC=gcc compiler gcc -Dc_args=-Wno-format-truncation; }
clang() { CC=clang OMPI_CC=clang compiler clang; }

# As if the headers were RHEL 8's. What neither compiler finds by itself are headers of no architecture,
# and musl's needs the kernel's.
cross() { # NAME ARGUMENTS OF THE COMPILER
    local file any=$PWD/build/cross/any kernel=$PWD/build/cross/kernel
    mkdir -p "$any" "$kernel"
    for file in /usr/include/{jansson.h,jansson_config.h,*/jansson_config.h,libmnl} "${SLURM_INC:-/usr/include}/slurm"; do
        [[ ! -e $file ]] || ln -sfn "$file" "$any"
    done
    for file in /usr/include/{linux,asm-generic,*-linux-gnu/asm}; do
        [[ ! -e $file ]] || ln -sfn "$file" "$kernel"
    done
    compiler "$1" --cross-file "tests/cross/$1.ini" \
        "-Dc_args=-Wno-format-truncation -include $PWD/tests/c/rhel8.h -isystem $any$2"
}

aarch64() { cross aarch64 ''; }
musl() { cross musl " -Wno-sign-conversion -isystem $PWD/build/cross/kernel"; }

mkdir -p "$lint"
parts=(python shell format gcc)
case ${1-} in
'') ;;
--all-compilers) parts+=(clang aarch64 musl) ;;
*) parts=("$@") ;;
esac
for part in "${parts[@]}"; do
    declare -F "$part" >/dev/null || {
        sed -n 2,5p "${BASH_SOURCE[0]}"
        exit 2
    }
    "$part"
done
