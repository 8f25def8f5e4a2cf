/* The sampling child's state, what its parent gives it, and what both share. */
#ifndef STEELYARD_SAMPLER_CHILD_STATE_H
#define STEELYARD_SAMPLER_CHILD_STATE_H

#include <stdatomic.h>

#include "base/clock.h"
#include "counters/job_connections.h"
#include "counters/node.h"
#include "meters/readings_to_joules.h"
#include "record/record.h"
#include "sampler/child_wait.h"
#include "sampler/job_reading.h"
#include "sampler/sample_buffer.h"

#define SY_KIND_SIZE 3000 /* with the totals it fits into one answer */

/* The page of memory that the sampler's two processes share. */
struct sy_shared {
	_Atomic unsigned current; /* which of the two was written whole */
	struct sy_status status[2];
	struct sy_tcp_counts tcp_counts; /* grow only: a reader may be one reading behind */
	struct sy_sample_buffer lines;	 /* of samples */
	char meter_reason[SY_MAX_ZONES]
			 [SY_REASON_SIZE]; /* they have no value; as of the last sample */
	_Atomic size_t notes_used;	   /* messages about the job, each ended by a NUL */
	char notes[SY_NOTES_SIZE];
	_Atomic unsigned kind_current; /* which of the two was written whole */
	char kind[2][SY_KIND_SIZE];    /* the node's kind from the record, for answers */
};

/* Open files, and what else the parent has made before. */
struct sy_child {
	struct sy_node *node;
	struct sy_shared *shared;
	int csv_fd; /* -1: only totals */
	int control_fd, parent_fd, watch_fd;
	struct sy_wall wall; /* since the files were named */
	pid_t self, parent;
	bool command; /* root is the parent: exact totals come at the end */
	const struct sy_sampling *sampling;
	struct sy_kernel_count *kernel;
	int64_t opening_us; /* how long the files' opening took, where that was long; else 0 */
};

/* A file system that takes longer does not answer; a first sample that comes later is late. */
#define SY_STALL_US 1000000

/* Samples that a timer in the kernel takes. */
struct sy_ticking {
	bool on, is_waiting;	  /* `tick` waits: it may be the last one for now */
	int64_t last_us, wall_us; /* when the last one was; the wall clock less the monotonic one */
	struct sy_bpf_tick tick;
};

struct sy_sampler {
	struct sy_child *child;
	struct sy_job job;
	struct sy_tcp tcp;
	struct sy_columns columns;
	struct sy_status status;
	struct sy_line line; /* of this sample */
	int64_t start_us, cpu_at_us, period_us;
	int64_t next_us, memory_us; /* the next sample; when memory is read without one */
	int64_t stalled_us;	    /* a write took so long since the last wakeup; 0: none did */
	struct sy_wall wall;
	struct sy_wakeup wakeup;
	struct sy_lifetime life;
	struct sy_ticking ticking;
	bool rights_settled; /* that to look into processes was given up, or must be kept */
	bool end;
};

/* The child's whole life: all it needs is open before it gives up its rights. */
__attribute__((noreturn)) void sy_child_run(struct sy_child *child);

#endif
