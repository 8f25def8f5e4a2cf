#!/bin/sh
# Torque's submit filter, as the user: qsub's arguments, the script on stdin; what it prints is
# queued, any other exit code than 0 refuses. Makes one `#PBS -l other=steelyard:TEXT` of
# #STEELYARD lines and STEELYARD_… variables: all that a prologue sees of what a user wants.
# It needs Torque 6.1.3: any other qsub starts a filter by a shell command with its arguments unquoted,
# so the shell executes `;` and `$(…)` in them and removes backslashes. #STEELYARD lines are safe.

PROGRAM=@PREFIX@/libexec/steelyard/steelyard-node
CONFIG=@CONFIG@
NETEM_KEYS='@NETEM_KEYS@'
TEXT_MAX=1000 # of the 2048 bytes in which a prologue is told all resources
prefix='#PBS' command_other=no theirs='' line_other='' line_v='' own='' command_v='' command_l='' whole_nodes=no

refuse() {
    echo "steelyard: $*" >&2
    exit 255
}

# wish LEVEL KEY VALUE: one more wish, encoded; the program says what is wrong with it.
wish() {
    [ -x "$PROGRAM" ] || refuse "$2=$3: there is no $PROGRAM on this host: ask the administrator for make install-torque-login."
    text=$("$PROGRAM" job encode "--$2=$3") || exit 255
    case $1 in
    line) line_v=${line_v:+$line_v:}$text ;;
    own) own=${own:+$own:}$text ;;
    command) command_v=${command_v:+$command_v:}$text ;;
    esac
}

variable() {
    case $2 in
    STEELYARD_NETEM) wish "$1" netem "$3" ;;
    STEELYARD_SAMPLE_RATE) wish "$1" sample-rate "$3" ;;
    STEELYARD_CACHE) wish "$1" cache "$3" ;;
    STEELYARD_TAGS)
        tags=$3
        while [ "$tags" ]; do
            wish "$1" tag "${tags%%;*}"
            case $tags in *\;*) tags=${tags#*;} ;; *) tags='' ;; esac
        done
        ;;
    esac
}

from_environment() {
    case $2 in
    STEELYARD_NETEM) [ -z "$STEELYARD_NETEM" ] || variable "$1" "$2" "$STEELYARD_NETEM" ;;
    STEELYARD_SAMPLE_RATE) [ -z "$STEELYARD_SAMPLE_RATE" ] || variable "$1" "$2" "$STEELYARD_SAMPLE_RATE" ;;
    STEELYARD_CACHE) [ -z "$STEELYARD_CACHE" ] || variable "$1" "$2" "$STEELYARD_CACHE" ;;
    STEELYARD_TAGS) [ -z "$STEELYARD_TAGS" ] || variable "$1" "$2" "$STEELYARD_TAGS" ;;
    esac
}

all_from_environment() {
    for name in NETEM SAMPLE_RATE CACHE TAGS; do from_environment "$1" "STEELYARD_$name"; done
}

# The list of -v: a comma ends a variable, `\,` is one in a value.
variables() {
    list=$2 after=
    while [ "$list" ]; do
        item=${list%%,*}
        case $list in *,*) list=${list#*,} ;; *) list='' ;; esac
        while case $item in *\\) [ "$list" ] ;; *) false ;; esac do
            item=${item%\\},${list%%,*}
            case $list in *,*) list=${list#*,} ;; *) list='' ;; esac
        done
        case $after:" $NETEM_KEYS " in STEELYARD_NETEM=*" ${item%%=*} "*)
            refuse "-v $after,$item: qsub ends a variable at a comma: write '\\,' for it, as in -v '$after\\,$item' (Torque before 6.1.3 loses it), or a line #STEELYARD --netem=… in the script"
            ;;
        esac
        after=$item
        case $item in
        STEELYARD_*=*) variable "$1" "${item%%=*}" "${item#*=}" ;;
        STEELYARD_*) from_environment "$1" "$item" ;;
        esac
    done
}

# The list of -l: LEVEL's text of other=; what else stands in it is kept.
resources() {
    case ,$2 in *,other=*) ;; *) return ;; esac
    value=,$2 && value=${value##*,other=} && value=${value%%,*} text=''
    case $value in
    steelyard:* | *+steelyard:*) text=${value##*steelyard:} && value=${value%steelyard:*} && value=${value%+} ;;
    esac
    case $1 in
    line) line_other=$text && [ "$command_other" = yes ] || theirs=$value ;;
    command) command_l=$text command_other=yes theirs=$value ;;
    esac
}

options() {
    level=$1 && shift
    while [ $# -gt 0 ]; do
        case $1 in
        -[aAbcCdDeFjJkKlLmMNopPqrStTuvwW])
            [ $# -gt 1 ] || return
            option "$level" "$1" "$2" && shift
            ;;
        -[aAbcCdDeFjJkKlLmMNopPqrStTuvwW]*) option "$level" "${1%"${1#??}"}" "${1#??}" ;;
        -*)
            case $1 in *V*) all_from_environment "$level" ;; esac
            case $1 in *n*) whole_nodes=yes ;; esac
            ;;
        *) return ;;
        esac
        shift
    done
}

option() {
    case $2 in
    -v) variables "$1" "$3" ;;
    -l) resources "$1" "$3" ;;
    -C) [ "$1" = line ] || prefix=$3 ;;
    esac
    return 0
}

# The words of a #STEELYARD line: sbatch's options.
steelyard_line() {
    while [ $# -gt 0 ]; do
        case $1 in
        --netem=* | --tag=* | --sample-rate=* | --cache=*) key=${1%%=*} && wish own "${key#--}" "${1#*=}" ;;
        --netem | --tag | --sample-rate | --cache)
            [ $# -gt 1 ] || refuse "#STEELYARD $1: expected a value"
            wish own "${1#--}" "$2" && shift
            ;;
        *) refuse "#STEELYARD $1: expected --netem=SPEC, --tag=KEY=VALUE, --sample-rate=HZ or --cache=cold|warm|cold:cvmfs=MB" ;;
        esac
        shift
    done
}

# merged <- the parts of $1 that $2 does not overrule, and $2. Tags add up.
merge() {
    merged=$2 kept=
    for part in $1; do
        case :$2 in *":${part%%=*}="*) [ "${part%%=*}" = tag ] || continue ;; esac
        kept=${kept:+$kept:}$part
    done
    merged=$kept${kept:+${2:+:}}$2
}

# Where this host has the nodes' settings: a job without qsub -n shares its nodes, unless they say that
# jobs never do.
may_share_nodes() {
    [ "$whole_nodes" = no ] && [ -r "$CONFIG" ] || return 1
    key='^[[:space:]]*exclusive[[:space:]]*=[[:space:]]*'
    [ "$(sed -n "s/$key\(.*[^[:space:]]\)[[:space:]]*\$/\1/p" "$CONFIG" | tail -n 1)" != yes ]
}

settle() {
    IFS=:
    merge "$line_other" "$line_v" && merge "$merged" "$own" && merge "$merged" "$command_v"
    asked=$merged
    merge "$asked" "$command_l"
    unset IFS
    [ "$merged" ] || return 0
    [ "${#merged}" -le "$TEXT_MAX" ] || refuse "the request has ${#merged} bytes, expected at most $TEXT_MAX: fewer or shorter tags"
    [ -x "$PROGRAM" ] || refuse "-l other=steelyard:…: there is no $PROGRAM on this host: ask the administrator for make install-torque-login."
    set -- --config "$CONFIG" --request "$merged"
    ! may_share_nodes || set -- "$@" --exclusive no
    "$PROGRAM" job check "$@" || exit 255
    all=${theirs:+$theirs+}steelyard:$merged
    [ "$command_other" = no ] || [ "$merged" = "$command_l" ] ||
        refuse "-l other=$theirs of the command line hides what the script or -v asks for: say -l other='$all'"
    [ "$prefix" ] || refuse "with -C '' qsub reads no line of the script: say -l other='$all'"
    [ "$command_other" = yes ] || directive="$prefix -l other=$all"
}

set -f
options command "$@"
head='' directive='' newline='
'
# shellcheck disable=SC2086 # words, as qsub has them
while line='' && { IFS= read -r line || [ "$line" ]; }; do
    case $line in
    "${prefix:-#PBS}"[[:blank:]]*) rest=${line#"${prefix:-#PBS}"} && options line $rest ;;
    '#STEELYARD'[[:blank:]]*) steelyard_line ${line#\#STEELYARD} ;;
    '#'* | '') ;;
    *) break ;;
    esac
    head=$head$line$newline line=
done
settle
printf '%s' "$head${directive:+$directive$newline}$line"
[ -z "$line" ] || echo
exec cat
