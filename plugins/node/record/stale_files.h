/* What nobody has taken out of the run folder: finished documents of jobs whose record was never
 * written, states of captures that were killed. They go when they are older than a day or than the
 * last boot. */
#ifndef STEELYARD_RECORD_STALE_FILES_H
#define STEELYARD_RECORD_STALE_FILES_H

#include <stdbool.h>

/* Whether there is anything to remove: two readdirs at most. */
bool sy_stale_files_any(const char *run_dir);

/* Remove it: how many files. */
int sy_stale_files_remove(const char *run_dir);

#endif
