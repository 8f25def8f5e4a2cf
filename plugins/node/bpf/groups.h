/* By what else than descent tasks become a job's: its cgroup, and what PBS puts into their
 * environment. */
#ifndef STEELYARD_BPF_GROUPS_H
#define STEELYARD_BPF_GROUPS_H

#include "base/error.h"
#include "bpf/handle.h"

/* Whoever is moved into the cgroup PATH (as in /proc/PID/cgroup, below `root`) or one below it is
 * the job's from then on: 0, or -1. */
int sy_bpf_group(struct sy_bpf *bpf, int root, const char *path, struct sy_error *err);

/* And who is in it by now: how many, or -1. */
int sy_bpf_adopt_group(struct sy_bpf *bpf, struct sy_error *err);

/* What `daemon`, or a fork of its, executes with `mark` in its environment as that user is the
 * job's: as root. 0, or -1. */
int sy_bpf_mark(struct sy_bpf *bpf, pid_t daemon, const char *mark, uid_t uid,
		struct sy_error *err);

/* How many programs of such daemons were root's, or had an environment that could not be read: of
 * any job. */
uint64_t sy_bpf_unread(const struct sy_bpf *bpf);

#endif
