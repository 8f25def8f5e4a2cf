/* Who of the living shows what processes that are gone have used: nothing may count twice. */
#ifndef STEELYARD_COUNTERS_PROCESSES_SETTLE_H
#define STEELYARD_COUNTERS_PROCESSES_SETTLE_H

#include "counters/processes_list.h"

/* Somebody has gone, or was read out of turn: who shows what they have used? */
void sy_processes_settle(struct sy_processes *all);

#endif
