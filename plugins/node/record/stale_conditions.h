/* Finished documents of network conditions in the run folder whose job's record was never written.
 * They are removed when they are older than a day or than the last boot. */
#ifndef STEELYARD_RECORD_STALE_CONDITIONS_H
#define STEELYARD_RECORD_STALE_CONDITIONS_H

#include <stdbool.h>

/* How many there are: one readdir; or, if `removes`, how many have been removed. */
int sy_stale_files(const char *run_dir, bool removes);

#endif
