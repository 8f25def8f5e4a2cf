/* A job as the kernel counts it. Opened by root; read and told of its processes with fewer rights.
 * Nothing of it allocates. */
#ifndef STEELYARD_BPF_JOB_H
#define STEELYARD_BPF_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/handle.h"
#include "bpf/layout.h"

/* The number of the job with that control socket, which all who know of the job can make. */
uint64_t sy_bpf_number(const char *control, unsigned long long made_ns);

/* Begin a job, or come to it where somebody has begun it: as root, with what is pinned below
 * `base`; with nothing there it fails. `number` 0: one that nobody else knows. `self`: what the
 * calling process is of it. `patience_ms`: for others at the same place; SY_BPF_BUSY:
 * it was not enough. */
int sy_bpf_begin(struct sy_bpf *bpf, const char *base, uint64_t number, enum sy_bpf_kind self,
		 int patience_ms, struct sy_error *err);

/* The calling process is of the job, too. SY_BPF_KEEPER: its sampler. Of these and of daemons of
 * steps: when none is left, the job may be swept. */
int sy_bpf_join(struct sy_bpf *bpf, enum sy_bpf_kind kind, struct sy_error *err);

/* `pid`, as this process sees it, and all that descends from it. `faults`: page faults of the
 * children it had waited for before any was the job's; -1: not known. Returns 1; 0: there is none
 * of that number; -1. */
int sy_bpf_adopt(struct sy_bpf *bpf, pid_t pid, enum sy_bpf_kind kind, int64_t faults,
		 struct sy_error *err);

/* Have a request of this process answered by a program to which every task is shown: 0, or
 * -errno. */
int sy_bpf_ask(const struct sy_bpf *bpf, int program, struct sy_bpf_request *request);

/* What the job has used until now; once more where a task has ended meanwhile: a few times, or for
 * `last`, which may wait for that, 1.5 s at most. */
int sy_bpf_read(struct sy_bpf *bpf, bool last, struct sy_bpf_answer *answer);

/* Of the job's processes that have ended, the largest one's resident set, as rusage has it. */
int64_t sy_bpf_largest_bytes(const struct sy_bpf *bpf);

/* The part of `cpu` that was spent in programs: in the ratio of the ticks that the kernel has
 * charged, all of it where it has charged none, as cputime_adjust() of the kernel does. */
int64_t sy_bpf_user_of(const struct sy_bpf_usage *used, int64_t cpu);

/* Go, and let the job be: others count on. */
void sy_bpf_close(struct sy_bpf *bpf);

/* End it: as root. Returns how many jobs are left; -1: there was none to end. */
int sy_bpf_end(struct sy_bpf *bpf);

#endif
