#!/bin/sh
# How `steelyard` is typed, once after a set-up, where the shell would not find it: setup/say_path.sh VENV
found=$(command -v steelyard)
if [ "$found" != "$1/bin/steelyard" ] && [ ! -e "$1/.said" ]; then
    printf 'steelyard: so that the shell finds the command, say now:\n  export PATH=%s/bin:%s\n' "$1" "\$PATH"
    : >"$1/.said"
fi
