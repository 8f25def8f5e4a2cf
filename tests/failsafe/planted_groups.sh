# shellcheck shell=bash disable=SC2317 # tests/run.sh reads this file and calls the functions
# A tier for tests/failsafe/run.sh: one lane fails while the other one continues.

lanes_of() { printf '%s\n' planted-green planted-red; }

group_planted-green() { sleep 1 && echo planted green; }
group_planted-red() { echo planted red && false; }
