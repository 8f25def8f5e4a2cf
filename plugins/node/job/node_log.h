/* The log RUN_DIR/NODE.log, with all failures of jobs on this node. */
#ifndef STEELYARD_JOB_NODE_LOG_H
#define STEELYARD_JOB_NODE_LOG_H

/* RUN_DIR/NODE.log, for a sampler's stderr, which outlives the slurmstepd that started the
 * sampler. -1: not available. */
int sy_log_open(const char *run_dir, const char *node);

/* Pass each line of that file to `log` once, and empty the file. */
void sy_log_forward(const char *run_dir, const char *node, void (*log)(const char *line));

/* One line of the log, with the time and the job; a log that has grown beyond 1 MB starts over.
 * Where the folder is not ours alone it goes to syslog(3): nothing of ours reaches the job. */
__attribute__((format(printf, 4, 5))) void
sy_log_write(const char *run_dir, const char *node, const char *job_id, const char *format, ...);

#endif
