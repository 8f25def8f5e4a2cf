/* The sampler: a parent that keeps its rights and writes the record, and a child that gives its
 * rights up and samples. docs/sampler.md tells who reads what, and what can be wrong.
 *
 * Between the two: a page of shared memory with the last totals, so that the parent knows them
 * whatever happens to the child, and a socket pair. */
#ifndef STEELYARD_SAMPLER_SAMPLER_H
#define STEELYARD_SAMPLER_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/line.h"
#include "counters/cgroup.h"
#include "counters/node.h"
#include "counters/processes.h"
#include "counters/rtt.h"
#include "counters/tcp_sockets.h"
#include "counters/unseen.h"
#include "record/message.h"
#include "sampler/open_roots.h"
#include "sampler/sample_buffer.h"
#include "sampler/wakeup.h"

#define SY_MAX_ROOTS  64
#define SY_NOTES_SIZE 65536

/* What the command line asks for. */
struct sy_plan {
	const char *record_dir, *job_id, *node, *control, *root_dir;
	const char *run_dir; /* of network conditions and captures, or NULL */
	int control_fd;	     /* already bound, or -1 */
	int print_fd;	     /* where the record's path goes, or -1 */
	double rate_hz;
	pid_t root[SY_MAX_ROOTS];
	int roots;
	pid_t watch; /* 0: nobody */
	bool has_owner;
	uid_t owner_uid;
	gid_t owner_gid;
	struct sy_marks marks; /* of orphans */
	struct sy_told told;
	char **command; /* or NULL: attached to a job that others start */
};

/* What the child knows, as of its last sample. */
struct sy_status {
	struct sy_sums sums;
	int64_t lost, missed_deadlines;
	int64_t wraps[SY_MAX_ZONES];
	int64_t cpu_ns, max_memory_bytes; /* its own */
	int64_t user_us, system_us;	  /* of the job; SY_UNKNOWN */
	int64_t cpu_held_us;		  /* found, but more than can be */
	double rate_hz;
	enum sy_source cpu_source, memory_source, io_source;
	bool pressure_of_job;
	bool finished; /* the last sample has been taken */
	bool overflowed;
	int lost_errno;
	int64_t dropped_notes;
	bool nothing_named; /* no process of the job was named */
	bool watch_lost;    /* whoever was to tell the job's end was gone without a word */
	struct sy_tcp_status tcp;
	struct sy_unseen unseen;
	int64_t unwaited;	   /* processes that nobody has waited for */
	int64_t io_least[SY_USES]; /* what its processes show, all of it or not */
	bool io_unseen;		   /* and it is not all of it */
	bool io_unreadable;	   /* /proc/PID/io of one of them may not be read */
};

struct sy_shared {
	_Atomic unsigned current; /* which of the two was written whole */
	struct sy_status status[2];
	struct sy_rtt_counts rtt_counts; /* grows only: a reader may be one reading behind */
	struct sy_unwritten lines;	 /* of samples */
	_Atomic size_t notes_used;	 /* messages about the job, each ended by a NUL */
	char notes[SY_NOTES_SIZE];
};

/* What the child needs, opened before it gives up its rights. */
struct sy_child {
	struct sy_node *node;
	struct sy_shared *shared;
	int csv_fd; /* -1: only totals */
	int control_fd, parent_fd, watch_fd;
	int64_t start_unix_s; /* in the names of the files */
	pid_t self, parent;
	bool command; /* root is the parent: exact totals come at the end */
	const struct sy_plan *plan;
};

int64_t sy_now_us(clockid_t clock);

/* Now, or the end of the second that the files are named by, which the parent has found a moment
 * ago. */
int64_t sy_start_unix_us(int64_t start_unix_s);

/* The child's: SIGTERM comes in ppoll only, what a terminal sends is not for it. */
void sy_child_signals(void (*on_term)(int));

/* Keep a message about the job for the parent, who writes the record. */
void sy_keep_note(struct sy_child *child, const char *text, int64_t *dropped);

/* Whose sockets the job's are, or SY_ANY_USER: a command that root starts may become any user. */
uid_t sy_job_user(const struct sy_plan *plan);

/* VmHWM of this process, bytes, or SY_UNKNOWN: getrusage's maximum would be that of the program
 * this one was executed from. */
int64_t sy_own_max_memory_bytes(void);

/* Add the memory of this process to the child's; unknown, if either is. */
void sy_add_own_memory(struct sy_status *status);

/* Raise the limit of open files: how many may be kept open, a few held back. */
int sy_raise_file_limit(void);

/* The answer to `totals`, not ended by NUL: its length. `question`: its number, or -1. */
size_t sy_totals_json(int64_t question, const struct sy_status *status, char *text, size_t size);

/* Why a record does not cover the whole job, NULL when it does; `ended` is the child's status. */
const char *sy_incomplete_reason(const struct sy_status *status, pid_t child, int ended, char *text,
				 size_t size);

/* Give back memory that the start has used: heap, and pages of program text. */
void sy_shrink(void);

/* The child's whole life; never returns. */
__attribute__((noreturn)) void sy_child_run(struct sy_child *child);

/* The parent's whole life: the exit code of the program. */
int sy_sample(struct sy_plan *plan);

#endif
