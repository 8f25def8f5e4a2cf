#!/bin/bash
# Run by tests/failsafe/run.sh only; it must fail.
echo 'not ok 1 - planted'
exit 1
