#!/bin/sh
# PBS takes a hook as one file: the parts in the order in which they need each other, without
# their imports of each other. join.sh > steelyard_hook.py
cd "$(dirname "$0")" || exit
for part in head base request server classic job hook; do
    sed -E '/^from (base|request|server|classic|job) import /d' "$part.py"
    printf '\n\n'
done
printf 'main()\n'
