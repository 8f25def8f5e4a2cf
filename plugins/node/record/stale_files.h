/* Finished documents of network conditions in the run folder whose job's record was never written.
 * They are removed when they are older than a day or than the last boot. */
#ifndef STEELYARD_RECORD_STALE_FILES_H
#define STEELYARD_RECORD_STALE_FILES_H

#include <stdbool.h>

/* Whether there is anything to remove: one readdir. */
bool sy_stale_files_any(const char *run_dir);

/* Remove it: how many files. */
int sy_stale_files_remove(const char *run_dir);

#endif
