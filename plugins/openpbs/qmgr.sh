#!/bin/sh
# The hook in the server: qmgr.sh print|run|remove [FOLDER] prints qmgr's commands, or runs them; FOLDER
# has steelyard_hook.py. A second run updates the hook to the files' contents.
action=$1 folder=${2:-$(cd "$(dirname "$0")" && pwd)} config=${3:-/etc/steelyard/openpbs.json}
events=queuejob,modifyjob,execjob_begin,execjob_attach,execjob_epilogue,execjob_end,execjob_abort,exechost_startup,exechost_periodic

exists() { qmgr -c "list $1 $2" >/dev/null 2>&1; }

# Print a command of qmgr, and with `run` or `remove` execute it.
run_qmgr() { # COMMAND
    echo "qmgr -c '$1'"
    case $action in
    run | remove) qmgr -c "$1" || exit 1 ;;
    esac
}

# Create an object that does not exist.
create() { # KIND NAME [ATTRIBUTES]
    { [ "$action" = run ] && exists "$1" "$2"; } || run_qmgr "create $1 $2${3:+ $3}"
}

# Install or update the hook. An existing hook stays enabled: otherwise jobs that begin now were missed.
install_hook() {
    create resource steelyard type=string,flag=m
    create resource steelyard_used type=string,flag=h
    { [ "$action" = run ] && exists hook steelyard; } || {
        run_qmgr "create hook steelyard"
        run_qmgr "set hook steelyard enabled = False"
    }
    run_qmgr "set hook steelyard event = \"$events\""
    run_qmgr "set hook steelyard order = 110"
    run_qmgr "set hook steelyard alarm = 90"
    run_qmgr "set hook steelyard freq = 300"
    run_qmgr "set hook steelyard fail_action = none"
    run_qmgr "import hook steelyard application/x-python default $folder/steelyard_hook.py"
    run_qmgr "import hook steelyard application/x-config default $config"
    run_qmgr "set hook steelyard enabled = True"
}

remove_hook() {
    if exists hook steelyard; then run_qmgr "delete hook steelyard"; fi
    for resource in steelyard steelyard_used; do
        if exists resource $resource; then
            echo "qmgr -c 'delete resource $resource'"
            qmgr -c "delete resource $resource" || echo "the resource $resource stays: jobs that have it are queued or in the history" >&2
        fi
    done
}

case $action in
print) install_hook ;;
run | remove)
    command -v qmgr >/dev/null || { echo "qmgr.sh: no qmgr on the PATH: say this on a host of the PBS server, as its manager" >&2 && exit 3; }
    if [ "$action" = run ]; then install_hook; else remove_hook; fi
    ;;
*) echo "usage: qmgr.sh print|run|remove [FOLDER [CONFIG]]" >&2 && exit 2 ;;
esac
