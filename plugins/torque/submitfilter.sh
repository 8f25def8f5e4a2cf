#!/bin/sh
# Torque's submit filter. It runs as the user with qsub's arguments and the script on stdin; qsub queues
# its output, and refuses the job at any exit code but 0. It converts #STEELYARD lines and STEELYARD_…
# variables to one `#PBS -l other=steelyard:TEXT`, which a prologue can read.
# It needs Torque 6.1.3: any other qsub starts a filter by a shell command with its arguments unquoted,
# so the shell executes `;` and `$(…)` in them and removes backslashes. #STEELYARD lines are safe.

PROGRAM=@PREFIX@/libexec/steelyard/steelyard-node
CONFIG=@CONFIG@
NETEM_KEYS='@NETEM_KEYS@'
TEXT_MAX=1000 # of the 2048 bytes of a prologue's list of resources
prefix='#PBS' command_other=no theirs='' line_other='' line_v='' script_lines='' command_v='' command_l='' exclusive_nodes=no

refuse() {
    echo "steelyard: $*" >&2
    exit 255
}

# Encode an option and add it to the request of LEVEL; the program reports a malformed one.
add_option() { # LEVEL KEY VALUE
    [ -x "$PROGRAM" ] || refuse "$2=$3: there is no $PROGRAM on this host: ask the administrator for make install-torque-login."
    text=$("$PROGRAM" job encode "--$2=$3") || exit 255
    case $1 in
    line) line_v=${line_v:+$line_v:}$text ;;
    script_lines) script_lines=${script_lines:+$script_lines:}$text ;;
    command) command_v=${command_v:+$command_v:}$text ;;
    esac
}

add_variable() { # LEVEL NAME VALUE
    case $2 in
    STEELYARD_NETEM) add_option "$1" netem "$3" ;;
    STEELYARD_SAMPLE_RATE) add_option "$1" sample-rate "$3" ;;
    STEELYARD_CACHE) add_option "$1" cache "$3" ;;
    STEELYARD_TAGS)
        tags=$3
        while [ "$tags" ]; do
            add_option "$1" tag "${tags%%;*}"
            case $tags in *\;*) tags=${tags#*;} ;; *) tags='' ;; esac
        done
        ;;
    esac
}

add_from_environment() { # LEVEL NAME
    case $2 in
    STEELYARD_NETEM) [ -z "$STEELYARD_NETEM" ] || add_variable "$1" "$2" "$STEELYARD_NETEM" ;;
    STEELYARD_SAMPLE_RATE) [ -z "$STEELYARD_SAMPLE_RATE" ] || add_variable "$1" "$2" "$STEELYARD_SAMPLE_RATE" ;;
    STEELYARD_CACHE) [ -z "$STEELYARD_CACHE" ] || add_variable "$1" "$2" "$STEELYARD_CACHE" ;;
    STEELYARD_TAGS) [ -z "$STEELYARD_TAGS" ] || add_variable "$1" "$2" "$STEELYARD_TAGS" ;;
    esac
}

add_environment() { # LEVEL
    for name in NETEM SAMPLE_RATE CACHE TAGS; do add_from_environment "$1" "STEELYARD_$name"; done
}

# Parse the list of -v: a comma ends a variable, `\,` is a comma in a value.
parse_variables() { # LEVEL LIST
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
        STEELYARD_*=*) add_variable "$1" "${item%%=*}" "${item#*=}" ;;
        STEELYARD_*) add_from_environment "$1" "$item" ;;
        esac
    done
}

# Parse the list of -l: the text of LEVEL in other=; its other values are kept.
parse_resources() { # LEVEL LIST
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

parse_options() { # LEVEL ARGUMENT…
    level=$1 && shift
    while [ $# -gt 0 ]; do
        case $1 in
        -[aAbcCdDeFjJkKlLmMNopPqrStTuvwW])
            [ $# -gt 1 ] || return
            parse_option "$level" "$1" "$2" && shift
            ;;
        -[aAbcCdDeFjJkKlLmMNopPqrStTuvwW]*) parse_option "$level" "${1%"${1#??}"}" "${1#??}" ;;
        -*)
            case $1 in *V*) add_environment "$level" ;; esac
            case $1 in *n*) exclusive_nodes=yes ;; esac
            ;;
        *) return ;;
        esac
        shift
    done
}

parse_option() { # LEVEL OPTION VALUE
    case $2 in
    -v) parse_variables "$1" "$3" ;;
    -l) parse_resources "$1" "$3" ;;
    -C) [ "$1" = line ] || prefix=$3 ;;
    esac
    return 0
}

# Parse a #STEELYARD line: sbatch's options.
parse_steelyard_line() { # WORD…
    while [ $# -gt 0 ]; do
        case $1 in
        --netem=* | --tag=* | --sample-rate=* | --cache=*) key=${1%%=*} && add_option script_lines "${key#--}" "${1#*=}" ;;
        --netem | --tag | --sample-rate | --cache)
            [ $# -gt 1 ] || refuse "#STEELYARD $1: expected a value"
            add_option script_lines "${1#--}" "$2" && shift
            ;;
        *) refuse "#STEELYARD $1: expected --netem=SPEC, --tag=KEY=VALUE, --sample-rate=HZ or --cache=cold|warm|cold:cvmfs=MB" ;;
        esac
        shift
    done
}

# Set merged to $2 and the options of $1 that $2 does not override. Tags are added.
merge() {
    merged=$2 others=
    for option in $1; do
        case :$2 in *":${option%%=*}="*) [ "${option%%=*}" = tag ] || continue ;; esac
        others=${others:+$others:}$option
    done
    merged=$others${others:+${2:+:}}$2
}

# Whether the job may share its nodes: known only where this host has the nodes' settings. A job without
# qsub -n shares them, unless `exclusive = yes` is set.
may_share_nodes() {
    [ "$exclusive_nodes" = no ] && [ -r "$CONFIG" ] || return 1
    key='^[[:space:]]*exclusive[[:space:]]*=[[:space:]]*'
    [ "$(sed -n "s/$key\(.*[^[:space:]]\)[[:space:]]*\$/\1/p" "$CONFIG" | tail -n 1)" != yes ]
}

write_request() {
    IFS=:
    merge "$line_other" "$line_v" && merge "$merged" "$script_lines" && merge "$merged" "$command_v"
    request=$merged
    merge "$request" "$command_l"
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
parse_options command "$@"
head='' directive='' newline='
'
# shellcheck disable=SC2086 # split as qsub does
while line='' && { IFS= read -r line || [ "$line" ]; }; do
    case $line in
    "${prefix:-#PBS}"[[:blank:]]*) rest=${line#"${prefix:-#PBS}"} && parse_options line $rest ;;
    '#STEELYARD'[[:blank:]]*) parse_steelyard_line ${line#\#STEELYARD} ;;
    '#'* | '') ;;
    *) break ;;
    esac
    head=$head$line$newline line=
done
write_request
printf '%s' "$head${directive:+$directive$newline}$line"
[ -z "$line" ] || echo
exec cat
