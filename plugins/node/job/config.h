/* The administrator's configuration of `steelyard-node job`: options, and a file of the same
 * keys. */
#ifndef STEELYARD_JOB_CONFIG_H
#define STEELYARD_JOB_CONFIG_H

#include <stdbool.h>

#include "base/error.h"

#define SY_PATH_SIZE 512 /* of a folder that an administrator names */

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

#endif
