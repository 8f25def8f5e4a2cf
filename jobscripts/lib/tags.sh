#!/bin/bash
# Tags of a run (docs/formats.md part 7): KEY=VALUE lines in ATTEMPT/tags.CLIENT. Part of steelyard.sh; for
# benchmarks to call, and for main after a completed run.

# Add a tag of this run on this node.
sy_tag() { # <key> <value>
    local value=${2//[[:cntrl:]]/ }
    printf '%s=%s\n' "$1" "${value:0:1000}" >>"$SY_ATTEMPT_DIR/tags.$SY_CLIENT"
}

sy_tag_nonempty() { # <key> <value, empty where it is not known>
    [[ -z $2 ]] || sy_tag "$1" "$2"
}

# Tag a completed run after the measured time: tags that cost time, or whose files must not be in the
# page cache of a run with cold caches. A benchmark's own such function is `sy_after`.
sy_tag_completed_run() {
    local SY_CLIENT=0
    sy_tag_nonempty scheduler.version "$(sy_scheduler version)"
    ! declare -F sy_after >/dev/null || (sy_after) || :
    sy_write_shell_usage main # the record includes this function's usage
} </dev/null &>/dev/null
