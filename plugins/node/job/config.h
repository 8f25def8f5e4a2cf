/* The administrator's configuration of `steelyard-node job`: options, and a file of the same
 * keys. */
#ifndef STEELYARD_JOB_CONFIG_H
#define STEELYARD_JOB_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "base/error.h"

/* The node's run folder: its required owner, and its log RUN_DIR/NODE.log with all failures. */

#define SY_PATH_SIZE 512 /* of a folder that an administrator names */

/* Make the folder when it is missing (/run is empty after a boot); -1 when another user than root
 * could write into it. */
int sy_run_dir_make(const char *run_dir, struct sy_error *err);

/* RUN_DIR/NODE.log, for a sampler's stderr, which outlives the slurmstepd that started the
 * sampler. -1: not available. */
int sy_log_open(const char *run_dir, const char *node);

/* Pass each line of that file to `log` once, and empty the file. */
void sy_log_forward(const char *run_dir, const char *node, void (*log)(const char *line));

/* One line of the log, with the time and the job; a log that has grown beyond 1 MB starts over.
 * Where the folder is not ours alone it goes to syslog(3): nothing of ours reaches the job. */
__attribute__((format(printf, 4, 5))) void
sy_log_write(const char *run_dir, const char *node, const char *job_id, const char *format, ...);

#define SY_JOB_CONFIG "/etc/steelyard/pbs.conf"
#define SY_HOSTS_SIZE 2048

struct sy_job_config {
	char record_dir[SY_PATH_SIZE]; /* where samplers leave records */
	char run_dir[SY_PATH_SIZE];    /* control sockets, states; root's, on every node its own */
	char node_program[SY_PATH_SIZE]; /* steelyard-node; "": this very program */
	char netem_policy[SY_PATH_SIZE]; /* what users may ask for: docs/netem.md */
	char root[SY_PATH_SIZE];	 /* counters are read below it; "": the machine's own */
	char protect[SY_HOSTS_SIZE];	 /* hosts that no condition touches, separated by commas */
	bool exclusive;			 /* by default jobs have nodes to themselves */
	bool bpf;			 /* the kernel counts, where it can */
	double rate_hz;			 /* samples a second by default */
	double max_rate_hz;		 /* what a user may ask for */
};

void sy_job_config_init(struct sy_job_config *config);

/* "yes" or "no": -1 with what was expected. */
int sy_config_set_switch(bool *on, const char *value, struct sy_error *err);

/* One key with its value: -1 with what was expected. */
int sy_job_config_set(struct sy_job_config *config, const char *key, const char *value,
		      struct sy_error *err);

/* Lines KEY=VALUE, `#` begins a comment. -1: the file is not root's alone (or ours), or a line is
 * wrong; earlier lines are applied. A missing file is no error unless `must`. */
int sy_job_config_read(struct sy_job_config *config, const char *path, bool must,
		       struct sy_error *err);

/* Where records of a job lie, found without a listing of all of them (base/folder.h). */

#define SY_RECORD_PATH_SIZE (SY_PATH_SIZE + 256)

/* The folder of records of the job that start at `start`. */
void sy_record_folder(char path[SY_RECORD_PATH_SIZE], const char *record_dir, const char *job_id,
		      time_t start);

/* START of every record of the node from `since` on, and by day of no more than SY_LOOK_BACK_DAYS.
 */
json_t *sy_record_starts(const char *record_dir, const char *job_id, const char *node,
			 time_t since);

/* The largest START of the latest day that has any; 0: there is none. Where a clock was set back
 * the newest file need not have it. */
time_t sy_record_newest(const char *record_dir, const char *job_id, const char *node);

/* A record NODE.START.json, to be freed; NULL: none, or not a file of a bounded size. It belongs to
 * the job's user, the folder to root: no link, no pipe. */
char *sy_read_record(int folder, const char *name);

#define SY_LOOK_BACK_DAYS 60 /* few jobs may run for longer, and their start is mostly known */

#endif
