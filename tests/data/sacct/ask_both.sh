#!/bin/sh
# What record_both.sh made jobs for: ask_both.sh FOLDER FIELDS; FIELDS of analysis/sources/sacct.py.
set -eu
export TZ=UTC LC_ALL=C.UTF-8 SLURM_BITSTR_LEN=0
ids=$(cat "$1/job_ids")
known=$(sacct --helpformat)
sacct --helpformat >"$1/helpformat.txt"
fields=$(for f in $(echo "$2" | tr , ' '); do if echo "$known" | grep -qw "$f"; then printf "%s," "$f"; fi; done)
SLURM_TIME_FORMAT=%s sacct -P --noconvert -D -n --delimiter="$(printf '\037')" --format="${fields%,}" -j "$ids" >"$1/jobs.txt"
echo "${fields%,}" >"$1/asked"
sacct --json -D -j "$ids" >"$1/jobs.json"
sacct --version >"$1/version"
