/* The node's run folder: control sockets, states, the log. Its owner must be root, or us. */
#ifndef STEELYARD_JOB_RUN_DIR_H
#define STEELYARD_JOB_RUN_DIR_H

#include "base/error.h"

/* Make the folder when it is missing (/run is empty after a boot); -1 when another user than root
 * could write into it. */
int sy_run_dir_make(const char *run_dir, struct sy_error *err);

#endif
