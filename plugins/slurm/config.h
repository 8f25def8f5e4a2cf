/* The arguments of our line in plugstack.conf. */
#ifndef STEELYARD_SLURM_CONFIG_H
#define STEELYARD_SLURM_CONFIG_H

#include <stdbool.h>

#include "job/config.h"

struct sy_config {
	char record_dir[SY_PATH_SIZE];	 /* where samplers leave records */
	char run_dir[SY_PATH_SIZE];	 /* control sockets; root's, on every node its own */
	char node_program[SY_PATH_SIZE]; /* steelyard-node */
	char netem_policy[SY_PATH_SIZE]; /* what users may ask for: docs/netem.md */
	double rate_hz;			 /* samples a second by default; 0: off */
	double max_rate_hz;		 /* what --sample-rate accepts */
	bool bpf;			 /* the kernel counts, where it can */
	bool admin_comment;		 /* write totals into AdminComment */
};

/* Set the defaults, then the values of `av`. A faulty or unknown argument is reported to
 * `complain` (one sentence; may be NULL) and otherwise ignored. */
void sy_config_parse(struct sy_config *config, int ac, char *const *av,
		     void (*complain)(const char *sentence));

#endif
