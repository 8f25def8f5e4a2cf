/* The node's own folder: who may own it, and its log RUN_DIR/NODE.log, where the administrator
 * finds what did not go as it should. */
#ifndef STEELYARD_JOB_RUN_DIR_H
#define STEELYARD_JOB_RUN_DIR_H

#include "base/error.h"

#define SY_PATH_SIZE 512 /* of a folder that an administrator names */

/* Make the folder when it is not there (/run is emptied at every start of the machine); -1 when
 * somebody else than root could put something into it. */
int sy_run_dir_make(const char *run_dir, struct sy_error *err);

/* RUN_DIR/NODE.log, for a sampler's stderr: it goes on when the slurmstepd that started it has
 * ended. -1: cannot be had. */
int sy_log_open(const char *run_dir, const char *node);

/* Hand over each line of that file once, and empty it. */
void sy_log_forward(const char *run_dir, const char *node, void (*tell)(const char *line));

/* One line of the log, with the time and the job; a log that has grown beyond 1 MB begins anew.
 * Where the folder is not ours alone it goes to syslog(3): nothing of ours reaches the job. */
__attribute__((format(printf, 4, 5))) void
sy_log_write(const char *run_dir, const char *node, const char *job_id, const char *format, ...);

#endif
