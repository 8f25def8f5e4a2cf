#!/usr/bin/env bats
# Run by tests/failsafe/run.sh only; it must fail.

@test "planted" {
    false
}
