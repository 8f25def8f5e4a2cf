#!/bin/sh
# Print how to add `steelyard` to PATH where the shell does not find it: once after a set-up, and again at
# the end of the demo, whose output has scrolled it away: setup/say_path.sh VENV [again]
found=$(command -v steelyard)
if [ "$found" != "$1/bin/steelyard" ] && { [ "${2-}" = again ] || [ ! -e "$1/.said" ]; }; then
    printf 'steelyard: so that the shell finds the command, say now:\n  export PATH=%s/bin:%s\n' "$1" "\$PATH"
    : >"$1/.said"
fi
