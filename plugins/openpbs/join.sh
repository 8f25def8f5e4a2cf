#!/bin/sh
# Joins the modules of the hook, since PBS accepts a single file: in the order of their imports, without
# these imports. join.sh > steelyard_hook.py
cd "$(dirname "$0")" || exit
for part in hook_docstring base request submission_check site_epilogue job hook; do
    sed -E '/^from (base|request|submission_check|site_epilogue|job) import /d' "$part.py"
    printf '\n\n'
done
printf 'main()\n'
