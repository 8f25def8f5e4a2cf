#!/bin/bash
# Holds the answers of a local Spark against DuckDB's: tests/spark/run.sh
# Needs Java 17; installs PySpark (500 MB) into build/venv-spark.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/../.."

readonly venv=build/venv-spark

java -version 2>/dev/null || {
    echo "tests/spark/run.sh: no java: apt-get install openjdk-17-jre-headless" >&2
    exit 3
}
if [[ ! -e $venv/.ready || setup.cfg -nt $venv/.ready ]]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check --use-pep517 -e '.[spark]' pytest || {
        echo "tests/spark/run.sh: PySpark could not be installed; the reason is above" >&2
        exit 3
    }
    touch "$venv/.ready"
fi
SPARK_LOCAL_IP=127.0.0.1 "$venv/bin/python" -P -m pytest -q tests/spark
