/* Scope job: a small program on the job's cgroup writes the band into the priority of the packets
 * to be shaped (bpf(2), BPF_CGROUP_INET_EGRESS; allowed since Linux 4.20). Every such kernel also
 * has the cgroup2 hierarchy, next to v1 too. Where it is not mounted we mount it below our own
 * folder, so nodes whose controllers are all on v1 are served, too. */
#ifndef STEELYARD_NETEM_KERNEL_JOB_SCOPE_H
#define STEELYARD_NETEM_KERNEL_JOB_SCOPE_H

#include <jansson.h>
#include <limits.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "netem/spec/spec.h"

/* The folder of a job's cgroup in the cgroup2 hierarchy: `cgroup` itself (as in /proc/PID/cgroup)
 * where it is one, else one of ours, made, `*own` true: the job's processes must be moved into it.
 */
int sy_scope_folder(const char *run_dir, const char *cgroup, const char *name, char *folder,
		    bool *own, struct sy_error *err);

int sy_scope_attach(const char *folder, const struct bpf_insn *code, int count,
		    struct sy_error *err);

/* Take every program of ours off, and remove the folder when it is ours; what is gone is gone. */
int sy_scope_detach(const char *folder, bool own, struct sy_error *err);

/* Remove the folders steelyard/NODE.* that are empty, have no BPF program, and belong to none of
 * `states` (an object by "NODE.JOB.json"): their processes were still ending when they were
 * undone. `own`: a folder next to them; NULL: where cgroup2 is mounted. Returns how many. The
 * caller holds the states' lock. */
int sy_scope_sweep(const char *own, const char *node, const json_t *states);

/* Into `notes` of the document that the job's own sockets alone are shaped, and which network file
 * systems `mounts` (as /proc/self/mounts, proc(5)) has, whose packets are the kernel's or a
 * daemon's; nothing where it has none. That it cannot be read is noted, too. */
void sy_netem_note_mounts(json_t *document, const char *mounts);

#define SY_SCOPE_MOST 4096 /* BPF_MAXINSNS */

#define SY_SCOPE_RULES 15 /* bands of a device */

/* Which packets get which priority. Of several each has a `to`, and none a port. */
struct sy_scope_rule {
	const struct sy_netem *spec;
	uint32_t priority;
};

/* The program: how many instructions were written to `code`, or -1 when there are too many. */
int sy_scope_program(const struct sy_scope_rule *rule, int rules, const struct sy_network *protect,
		     int count, struct bpf_insn *code);

#endif
