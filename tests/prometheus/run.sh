#!/bin/bash
# Holds the metrics and the queries of the Grafana dashboard against a real Prometheus: tests/prometheus/run.sh
# Fetches Debian's package (19 MB) and unpacks it: installed, it would start a daemon.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

readonly folder=build/prometheus

if [[ ! -e $folder/usr/bin/prometheus ]]; then
    mkdir -p "$folder"
    (cd "$folder" && apt-get -q download prometheus && dpkg -x prometheus_*.deb . && rm -f prometheus_*.deb) || {
        echo "tests/prometheus/run.sh: Debian's package prometheus could not be fetched: apt-get update, or put prometheus and promtool on the PATH" >&2
        exit 3
    }
fi
build/venv/bin/python -P -m pytest -q tests/prometheus
