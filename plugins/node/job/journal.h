/* RUN_DIR/NODE.log: where the administrator finds what did not go as it should. */
#ifndef STEELYARD_JOB_JOURNAL_H
#define STEELYARD_JOB_JOURNAL_H

/* One line, with the time and the job; a log that has grown beyond 1 MB begins anew. Where the
 * folder is not ours alone it goes to syslog(3): nothing of ours reaches the job. */
__attribute__((format(printf, 4, 5))) void sy_journal(const char *run_dir, const char *node,
						      const char *job_id, const char *format, ...);

#endif
