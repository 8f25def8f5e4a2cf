#!/bin/sh
# The hook in the server. qmgr.sh print|run|remove [FOLDER]: what to say to qmgr, or said to it;
# FOLDER has steelyard_hook.py. Run again it puts the files' present contents in place.
action=$1 folder=${2:-$(cd "$(dirname "$0")" && pwd)} config=${3:-/etc/steelyard/openpbs.json}
events=queuejob,modifyjob,execjob_begin,execjob_attach,execjob_epilogue,execjob_end,execjob_abort,exechost_startup,exechost_periodic

has() { qmgr -c "list $1 $2" >/dev/null 2>&1; }

# say COMMAND: shown, and with `run` said.
say() {
    echo "qmgr -c '$1'"
    case $action in
    run | remove) qmgr -c "$1" || exit 1 ;;
    esac
}

# make KIND NAME [MORE]: only what is not there yet.
make() {
    { [ "$action" = run ] && has "$1" "$2"; } || say "create $1 $2${3:+ $3}"
}

# A hook that is there already stays on: jobs that begin meanwhile would be missed.
put() {
    make resource steelyard type=string,flag=m
    make resource steelyard_used type=string,flag=h
    { [ "$action" = run ] && has hook steelyard; } || {
        say "create hook steelyard"
        say "set hook steelyard enabled = False"
    }
    say "set hook steelyard event = \"$events\""
    say "set hook steelyard order = 110"
    say "set hook steelyard alarm = 90"
    say "set hook steelyard freq = 300"
    say "set hook steelyard fail_action = none"
    say "import hook steelyard application/x-python default $folder/steelyard_hook.py"
    say "import hook steelyard application/x-config default $config"
    say "set hook steelyard enabled = True"
}

take_away() {
    if has hook steelyard; then say "delete hook steelyard"; fi
    for resource in steelyard steelyard_used; do
        if has resource $resource; then
            echo "qmgr -c 'delete resource $resource'"
            qmgr -c "delete resource $resource" || echo "the resource $resource stays: jobs that have it are queued or in the history" >&2
        fi
    done
}

case $action in
print) put ;;
run | remove)
    command -v qmgr >/dev/null || { echo "qmgr.sh: no qmgr on the PATH: say this on a host of the PBS server, as its manager" >&2 && exit 3; }
    if [ "$action" = run ]; then put; else take_away; fi
    ;;
*) echo "usage: qmgr.sh print|run|remove [FOLDER [CONFIG]]" >&2 && exit 2 ;;
esac
