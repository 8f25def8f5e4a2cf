#!/usr/bin/env bats
# What an admin installs, and what set-up says when it may not install.

bats_require_minimum_version 1.5.0

setup() {
    ROOT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    cd "$BATS_TEST_TMPDIR" || return 1
}

@test "make install-slurm puts plugin, node program and an example line under DESTDIR" {
    run -0 make -s -C "$ROOT" install-slurm DESTDIR="$PWD/root" PREFIX=/opt/steelyard
    local -r prefix=root/opt/steelyard
    [[ -x $prefix/libexec/steelyard/steelyard-node ]]
    [[ -d root/var/lib/steelyard/records ]]
    local -r example=$prefix/share/doc/steelyard/plugstack.conf.example
    grep -E '^(#[[:space:]]*)?optional[[:space:]]+/opt/steelyard/lib/steelyard/spank_steelyard.so' "$example"
    run ! grep '@' "$example"
    # A start for the policy, which nobody gets by installing alone.
    cmp "$prefix/share/doc/steelyard/netem.conf.example" "$ROOT/plugins/node/netem/netem.conf.example"
    [[ ! -e root/etc ]]
    # What the line names is there.
    [[ -f root/opt/steelyard/lib/steelyard/spank_steelyard.so ]]
    run -0 "$prefix/libexec/steelyard/steelyard-node" --version
    [[ $output == "steelyard-node $(cat "$ROOT/VERSION")" ]]
}

@test "the plugin shows Slurm its callbacks and nothing else" {
    run -0 nm -D --defined-only "$ROOT/build/lib/spank_steelyard.so"
    [[ $output == *" plugin_name"* ]]
    [[ $output == *" slurm_spank_init"* ]]
    run ! grep -vE ' (plugin_(name|type|version)|spank_plugin_version|slurm_spank_[a-z_]+)(@.*)?$' <<<"$output"
}

@test "make help lists the README's targets" {
    run -0 make -s -C "$ROOT" help
    local target
    for target in demo test bench install-slurm lint; do
        grep -q "^$target " <<<"$output"
    done
}

@test "make bench without a name lists the benchmarks" {
    run -2 make -s -C "$ROOT" bench BENCH=no-such
    [[ $output == *"sampler"* ]]
}

@test "a missing package is one apt command and exit 3 for an ordinary user" {
    ((EUID == 0)) || skip "needs root to become another user"
    mkdir setup
    cp "$ROOT/setup/packages.sh" setup/
    printf 'bash\nno-such-package-of-steelyard # comment\n' >setup/run.txt
    chmod -R a+rX .
    run -3 setpriv --reuid=65534 --clear-groups setup/packages.sh run
    [[ ${lines[1]} == "  apt-get install --no-install-recommends no-such-package-of-steelyard" ]]
}

@test "nothing missing: nothing is said" {
    mkdir setup
    cp "$ROOT/setup/packages.sh" setup/
    echo bash >setup/run.txt
    run -0 setup/packages.sh run
    [[ -z $output ]]
}
