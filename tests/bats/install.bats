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

@test "a folder of records that install-slurm makes is by day; one that is there, or of a package, is left as it is" {
    [[ ! -d /var/spool/steelyard ]] || skip "this node has a spool, where the mark is the mounted file system's"
    run -0 make -s -C "$ROOT" install-slurm PREFIX="$PWD/prefix" RECORD_DIR="$PWD/new/records"
    [[ $output == *"new: $PWD/new/records, where records lie by day"* ]]
    [[ -f new/records/.steelyard-records && ! -s new/records/.steelyard-records ]]
    run -0 prefix/libexec/steelyard/steelyard-node doctor --only records --record-dir "$PWD/new/records"
    [[ $output == "ok       records: $PWD/new/records: by day; 0 entries lie beside one another" ]]
    rm new/records/.steelyard-records
    run -0 make -s -C "$ROOT" install-slurm PREFIX="$PWD/prefix" RECORD_DIR="$PWD/new/records"
    run -0 ls -A new/records
    [[ -z $output ]]
    run -0 make -s -C "$ROOT" install-slurm DESTDIR="$PWD/package" RECORD_DIR=/r
    run -0 ls -A package/r
    [[ -z $output ]]
}

@test "all three installs make the folder of records the same way" {
    run -0 grep -cE '^    make_record_folder$' "$ROOT/packaging/install.sh"
    [[ $output == 3 ]]
    run -0 grep -cE 'install -d .*record_dir' "$ROOT/packaging/install.sh"
    [[ $output == 1 ]]
}

@test "make install-torque and install-openpbs bring what has the kernel count, where it was built" {
    mkdir -p root/pbs/mom_priv
    run -0 make -s -C "$ROOT" install-torque install-openpbs DESTDIR="$PWD/root" PREFIX=/opt/steelyard PBS_HOME=/pbs
    local -r programs=root/opt/steelyard/libexec/steelyard
    cmp "$programs/steelyard-node" "$ROOT/build/bin/steelyard-node"
    [[ -e $ROOT/build/bin/steelyard-bpf ]] || skip "no steelyard-bpf: libbpf-dev or clang was missing"
    cmp "$programs/steelyard-bpf" "$ROOT/build/bin/steelyard-bpf"
    grep '^#bpf=yes' root/etc/steelyard/pbs.conf
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

@test "a package with a question mark is left out where the release has none of that name" {
    mkdir setup
    cp "$ROOT/setup/packages.sh" setup/
    printf 'bash?\nno-such-package-of-steelyard?\n' >setup/run.txt
    run -0 setup/packages.sh run
    [[ -z $output ]]
}

@test "nothing missing: nothing is said" {
    mkdir setup
    cp "$ROOT/setup/packages.sh" setup/
    echo bash >setup/run.txt
    run -0 setup/packages.sh run
    [[ -z $output ]]
}

@test "a step of the set-up says in a log that it begins and how it ended, and its notes" {
    run -0 "$ROOT/setup/step.sh" 'some step' sh -c 'echo hidden; echo "note: told"'
    [[ ${lines[0]} == 'steelyard: some step' && ${lines[1]} == 'note: told' ]]
    [[ ${lines[2]} == 'steelyard: done after '*' s' && ${#lines[@]} == 3 ]]
}

@test "a step that fails shows all that it said" {
    run -3 "$ROOT/setup/step.sh" 'some step' sh -c 'echo a reason; exit 3'
    [[ ${lines[1]} == 'a reason' && ${lines[2]} == 'steelyard: failed after '*' s: some step' ]]
}

@test "on a terminal a step says how far it is" {
    local told='pmstatus:gcc:45.3:Unpacking gcc'
    run -0 script -qec "'$ROOT/setup/step.sh' some sh -c 'echo $told'" /dev/null
    [[ $output == *' s  45 %, Unpacking gcc'* ]]
    told='Collecting one; echo Collecting two'
    run -0 script -qec "'$ROOT/setup/step.sh' some sh -c 'echo $told'" /dev/null
    [[ $output == *' s  2 Python packages found, Collecting two'* ]]
}

@test "how steelyard is typed is said once, again after the demo, and not to who has it on the PATH" {
    mkdir -p venv/bin other/bin
    ln -s /bin/true other/bin/steelyard
    chmod -R a+rX .
    PATH=$PWD/other/bin:$PATH run -0 "$ROOT/setup/say_path.sh" "$PWD/other"
    [[ -z $output ]]
    run -0 "$ROOT/setup/say_path.sh" "$PWD/venv"
    [[ ${lines[1]} == "  export PATH=$PWD/venv/bin:\$PATH" ]]
    run -0 "$ROOT/setup/say_path.sh" "$PWD/venv"
    [[ -z $output ]]
    run -0 "$ROOT/setup/say_path.sh" "$PWD/venv" again
    [[ ${lines[1]} == "  export PATH=$PWD/venv/bin:\$PATH" ]]
    PATH=$PWD/other/bin:$PATH run -0 "$ROOT/setup/say_path.sh" "$PWD/other" again
    [[ -z $output ]]
}
