#!/bin/sh
# Joins the modules of the hook, since PBS accepts a single file: in the order of their imports, without
# these imports. join.sh > steelyard_hook.py
cd "$(dirname "$0")" || exit
for part in head base request server classic job hook; do
    sed -E '/^from (base|request|server|classic|job) import /d' "$part.py"
    printf '\n\n'
done
printf 'main()\n'
