/* A job as the kernel counts it. Opened by root; read and told of its processes with fewer rights.
 * Nothing of it allocates. */
#ifndef STEELYARD_BPF_JOB_H
#define STEELYARD_BPF_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/layout.h"

#define SY_BPF_PROGRAMS 4

struct sy_bpf {
	uint64_t job; /* 0: the kernel does not count */
	const char *base;
	int program[SY_BPF_PROGRAMS]; /* as long as they are open they are not unloaded */
	int requests, adopt, read_job, read_tasks, map;
	struct sy_bpf_job *mapped;
	bool walks; /* read_job may be called */
};

/* Begin a job: as root, with what is pinned below `base`; a begin with nothing there fails. */
int sy_bpf_begin(struct sy_bpf *bpf, const char *base, struct sy_error *err);

/* The calling process is its sampler, or one of them: when none is left, the job may be swept. */
int sy_bpf_keep(struct sy_bpf *bpf, struct sy_error *err);

/* `pid`, as this process sees it, and all that descends from it. `faults`: page faults of the
 * children it had waited for before any was the job's; -1: not known. */
int sy_bpf_adopt(struct sy_bpf *bpf, pid_t pid, enum sy_bpf_kind kind, int64_t faults,
		 struct sy_error *err);

/* What the job has used until now; once more where a task has ended meanwhile: a few times, or for
 * `last`, which may wait for that, some hundred ms. */
int sy_bpf_read(struct sy_bpf *bpf, bool last, struct sy_bpf_answer *answer);

/* The part of `cpu` that was spent in programs: in the ratio of the ticks that the kernel has
 * charged, all of it where it has charged none, as cputime_adjust() of the kernel does. */
int64_t sy_bpf_user_of(const struct sy_bpf_usage *used, int64_t cpu);

/* End it: as root. Where it was the last one, all is unpinned. */
void sy_bpf_end(struct sy_bpf *bpf);

#endif
