/* Starts the sampler of a job: `steelyard-node sample`, which stays. */
#ifndef STEELYARD_JOB_SAMPLER_LAUNCH_H
#define STEELYARD_JOB_SAMPLER_LAUNCH_H

#include <sys/un.h>

#include "job/job_options.h"
#include "job/node_command.h"

struct sy_launch {
	struct sy_node_program program;
	const char *record_dir, *job_id, *node;
	const char *bpf;  /* the program that has the kernel count; NULL: none */
	const char *root; /* NULL: counters are the machine's own */
	double rate_hz;
	pid_t watch;  /* the process that will report the job's end */
	pid_t parent; /* the daemon whose marked children are the job's; 0: none */
	unsigned linger_s;
	uid_t uid;
	gid_t gid;
	const struct sockaddr_un *control;
	const char *mark[SY_MAX_MARKS];
	int marks;
	char *const *job_fields;    /* NULL-terminated FIELD=VALUE */
	const struct sy_tags *tags; /* the known ones, or NULL */
};

/* Bind the control socket and start `steelyard-node sample` on it. Returns when the process is on
 * its way, without waiting for it to be ready: messages wait in the socket meanwhile. `pid`: its
 * process id, or NULL. -1 too where SY_OPENING_MAX samplers wait for the folder of records. */
int sy_launch_sampler(const struct sy_launch *launch, pid_t *pid, struct sy_error *err);

#endif
