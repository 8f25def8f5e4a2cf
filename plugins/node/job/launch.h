/* Starting the sampler: a process of its own, outside the job. */
#ifndef STEELYARD_JOB_LAUNCH_H
#define STEELYARD_JOB_LAUNCH_H

#include <sys/types.h>
#include <sys/un.h>

#include "base/error.h"
#include "counters/processes_list.h"
#include "job/spawn.h"
#include "job/tag.h"

/* How our own program is started on this node. */
struct sy_node_program {
	const char *path, *run_dir;
	const char *keep;	 /* as in struct sy_arguments */
	sy_way_out_rule way_out; /* likewise */
};

struct sy_launch {
	struct sy_node_program program;
	const char *record_dir, *job_id, *node;
	const char *bpf;  /* the program that has the kernel count; NULL: none */
	const char *root; /* NULL: counters are the machine's own */
	double rate_hz;
	pid_t watch;  /* whoever tells the job's end */
	pid_t parent; /* the daemon whose marked children are the job's; 0: none */
	unsigned linger_s;
	uid_t uid;
	gid_t gid;
	const struct sockaddr_un *control;
	const char *mark[SY_MAX_MARKS];
	int marks;
	char *const *job_fields;    /* NULL-terminated FIELD=VALUE */
	const struct sy_tags *tags; /* those known by now, or NULL */
};

/* Bind the control socket and start `steelyard-node sample` on it. Returns when the process is on
 * its way, without waiting for it to be ready: messages wait in the socket meanwhile. `pid`: its
 * process id, or NULL. -1 too where SY_OPENING_MAX samplers wait for the folder of records. */
int sy_launch_sampler(const struct sy_launch *launch, pid_t *pid, struct sy_error *err);

/* The beginning of a command of our own program. */
void sy_begin_arguments(struct sy_arguments *to, const struct sy_node_program *program);

/* Let records whose sampler was killed be finished, without waiting; as a rule there are none. */
void sy_finish_records(const struct sy_node_program *program, const char *node);

/* Let what killed samplers have left in the kernel be unloaded, without waiting. */
void sy_sweep_bpf(const struct sy_node_program *program, const char *bpf);

#endif
