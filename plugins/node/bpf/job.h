/* The kernel's count of a job: what our processes request of the program that plugins/bpf loads.
 *
 * The program and its maps are pinned in a bpf filesystem (pins.h). What the program does is in
 * plugins/bpf/job_usage.bpf.c, what both sides know in layout.h, bpf(2) in system_call.h.
 *
 * A job is
 * - begun (sy_bpf_begin): it has a number and maps, and whatever its processes fork is counted.
 *   Sampler, step daemons and prologues make the same number from the job's control socket; the
 *   first of them makes the maps, the others open them.
 * - given its processes: by sy_bpf_join (the caller) and sy_bpf_adopt (a process with all
 *   descendants), by its cgroup (sy_bpf_group) or by its mark in their environment (sy_bpf_mark).
 * - read (sy_bpf_read), by its sampler alone; between two readings a timer in the kernel may read
 *   it, too (sy_bpf_set_ticks).
 * - ended (sy_bpf_end), or swept (pins.h) once its sampler and all daemons of its steps are gone.
 *
 * Beginning, ending and marking need root. The rest needs no rights, before Linux 5.19 CAP_BPF
 * (sy_bpf_needs_right). Nothing allocates memory, and nothing waits without a limit. What the count
 * lacks is in the answer: `lost`, `missed`, `late`, `unread`, `unlisted`.
 *
 * Not here: whether a record uses the count (sampler/kernel_count.h), and loading (plugins/bpf). */
#ifndef STEELYARD_BPF_JOB_H
#define STEELYARD_BPF_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/layout.h"

#define SY_BPF_MAPS 3 /* a job's own */

/* What a job's process has open of what is pinned. While it has the first four open the kernel does
 * not unload them. */
enum sy_bpf_pin {
	SY_BPF_PIN_FREE,
	SY_BPF_PIN_EXIT,
	SY_BPF_PIN_EXEC,
	SY_BPF_PIN_NEW,
	SY_BPF_PIN_REQUESTS,
	SY_BPF_PIN_ADOPT,
	SY_BPF_PIN_JOIN,
	SY_BPF_PIN_READ_JOB,
	SY_BPF_PIN_SET_TICKS,
	SY_BPF_PIN_ADOPT_GROUP,
	SY_BPF_PIN_GROUPS,
	SY_BPF_PIN_UNREAD,
	SY_BPF_PINS
};

/* An open job: what a process of ours keeps of it. */
struct sy_bpf {
	uint64_t job; /* 0: the kernel does not count */
	const char *base;
	int pin[SY_BPF_PINS];
	int map;
	int folder; /* while it is open, no sweep unpins the program */
	struct sy_bpf_job *mapped;
	bool ticks;		  /* a timer in the kernel may read it */
	int64_t period_us;	  /* of that timer; 0: it is off */
	uint64_t taken;		  /* of what it has read */
	int64_t processors;	  /* of the node */
	pid_t maker[SY_BPF_MAPS]; /* children that still make its maps; 0: none */
};

/* --- begun and ended --- */

/* The number of the job with that control socket. Every process that knows the socket can compute
 * it. */
uint64_t sy_bpf_hash_job(const char *control, unsigned long long made_ns);

/* Begin a job, or open one that another process has begun: as root, with what is pinned below
 * `base`; with nothing there it fails. `number` 0: one that no other process knows. `self`: what
 * the calling process is of it. `patience_ms`: for others at the same place; SY_BPF_BUSY: it was
 * not enough. */
int sy_bpf_begin(struct sy_bpf *bpf, const char *base, uint64_t number, enum sy_bpf_kind self,
		 int patience_ms, struct sy_error *err);

/* Whether a process has begun the job within so many milliseconds. */
bool sy_bpf_await(const char *base, uint64_t number, int patience_ms);

/* Wait for the children that sy_bpf_begin has left: the beginner calls this, or sy_bpf_close. */
void sy_bpf_reap(struct sy_bpf *bpf);

/* Close it; the count continues for others. */
void sy_bpf_close(struct sy_bpf *bpf);

/* End it: as root. Returns how many jobs are left; -1: there was none to end. */
int sy_bpf_end(struct sy_bpf *bpf);

/* Whether the kernel refuses bpf(2) without CAP_BPF, even on what is open already: before
 * Linux 5.19 where kernel.unprivileged_bpf_disabled is not 0. As root, to whom nothing is refused.
 */
bool sy_bpf_needs_right(const struct sy_bpf *bpf);

/* --- its processes --- */

/* The calling process is of the job, too. SY_BPF_KEEPER: its sampler. When none of these and of the
 * daemons of steps is left, the job may be swept. */
int sy_bpf_join(struct sy_bpf *bpf, enum sy_bpf_kind kind, struct sy_error *err);

/* `pid`, as this process sees it, and all that descends from it. `faults`: page faults of the
 * children it had waited for before any was the job's; -1: not known. Returns 1; 0: there is none
 * of that number; -1. */
int sy_bpf_adopt(struct sy_bpf *bpf, pid_t pid, enum sy_bpf_kind kind, int64_t faults,
		 struct sy_error *err);

/* A process that moves into the cgroup PATH (as in /proc/PID/cgroup, below `root`) or one below it
 * is the job's from then on: 0, or -1. */
int sy_bpf_group(struct sy_bpf *bpf, int root, const char *path, struct sy_error *err);

/* Adopt the processes that are in that cgroup now: how many, or -1. */
int sy_bpf_adopt_group(struct sy_bpf *bpf, struct sy_error *err);

/* What `daemon`, or a fork of it, executes with `mark` in its environment as that user is the
 * job's: as root. 0, or -1. */
int sy_bpf_mark(struct sy_bpf *bpf, pid_t daemon, const char *mark, uid_t uid,
		struct sy_error *err);

/* --- what it has used --- */

/* How long a reading may be repeated where a task is just ending, which would be left out. */
enum sy_bpf_patience {
	SY_BPF_BRIEF,	/* a few times: the next sample has it */
	SY_BPF_SETTLED, /* 0.3 s: the values are used as totals */
	SY_BPF_LAST,	/* 4 s, and until every task has a place in the list */
};

/* What was used until now. */
int sy_bpf_read(struct sy_bpf *bpf, enum sy_bpf_patience patience, struct sy_bpf_answer *answer);

/* The largest resident set of a process of the job that has ended, as rusage has it. */
int64_t sy_bpf_largest_bytes(const struct sy_bpf *bpf);

/* The part of `cpu` that was spent in programs: in the ratio of the ticks that the kernel has
 * charged, all of it where it has charged none, as cputime_adjust() of the kernel does. */
int64_t sy_bpf_split_user(const struct sy_bpf_usage *used, int64_t cpu);

/* How many programs started by marking daemons, of any job, were root's or had an environment that
 * could not be read. */
uint64_t sy_bpf_count_unread(const struct sy_bpf *bpf);

/* Let the kernel read the job every `period_us`; 0: stop. An unchanged period keeps its
 * deadlines. 0, or -errno. */
int sy_bpf_set_ticks(struct sy_bpf *bpf, int64_t period_us);

/* Whether a job can have used so much CPU by `at_ns`, on all processors since it began. The kernel
 * reads tasks by their address, and memory that is no task's any more may hold any number. */
bool sy_bpf_is_possible(const struct sy_bpf *bpf, const struct sy_bpf_usage *used, uint64_t at_ns);

/* All readings of that timer since the last call, in their order, but for impossible ones: how many
 * were lost because they were not taken in time, or are impossible. */
int64_t sy_bpf_read_ticks(struct sy_bpf *bpf,
			  void (*note)(void *context, const struct sy_bpf_tick *tick),
			  void *context);

/* How long that timer may be left alone without a loss. */
int64_t sy_bpf_patience_us(int64_t period_us);

/* --- between the files of this room --- */

/* Make the job's own maps, under the lock: 0, or -errno; then sy_bpf_reap. */
int sy_bpf_make_maps(struct sy_bpf *bpf, const char *base, uint64_t now_ns);

/* Whether another process has made them: then they are open. */
bool sy_bpf_open_maps(struct sy_bpf *bpf, const char *base);

/* Have a request of this process answered by a program to which every task is shown: 0, or
 * -errno. */
int sy_bpf_send_request(const struct sy_bpf *bpf, enum sy_bpf_pin program,
			struct sy_bpf_request *request);

#endif
