/* What the sampling child knows, as of its last sample, and tells beside the samples. */
#ifndef STEELYARD_RECORD_STATUS_H
#define STEELYARD_RECORD_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/line.h"
#include "counters/cgroup.h"
#include "counters/processes.h"
#include "counters/tcp_sockets.h"
#include "meters/meters.h"

#define SY_NOTES_SIZE 65536 /* messages about the job, on their way to its record */

struct sy_status {
	struct sy_sums sums;
	int64_t lost, missed_deadlines;
	struct sy_meter_status meter[SY_MAX_ZONES];
	int64_t cpu_ns, max_memory_bytes;   /* its own */
	int64_t user_us, system_us;	    /* of the job; SY_UNKNOWN */
	int64_t minor_faults, major_faults; /* of the job, counted by the kernel; SY_UNKNOWN */
	int64_t charged_peak_bytes;	    /* of its cgroup; SY_UNKNOWN */
	int64_t gpu_energy_uj;		    /* of those that are the job's; SY_UNKNOWN */
	bool has_gpus;			    /* the node */
	int64_t exclusive; /* 1: the job has the node for itself; 0: not; SY_UNKNOWN */
	int64_t clock_steps,
	    clock_step_us; /* of the wall clock: how often it was set, by how much */
	double rate_hz;
	enum sy_source cpu_source, memory_source, io_source;
	bool pressure_of_job;
	int64_t stolen_us; /* by the node's host, until the job's end; SY_UNKNOWN */
	bool finished;	   /* the last sample has been taken */
	int lost_errno;
	int64_t dropped_notes;
	bool nothing_named; /* no process of the job was named */
	bool begun_late;    /* nobody told the job's begin */
	bool watch_lost;    /* whoever was to tell the job's end was gone without a word */
	struct sy_tcp_status tcp;
	int64_t group_us;	   /* CPU that the job's cgroup has counted, and of it what */
	int64_t gap_us;		   /* no step has reported; SY_UNKNOWN: not compared */
	bool by_marks;		   /* no step reports: the job's processes are known by marks */
	bool group_gone;	   /* the cgroup went before it could be read for the last time */
	int64_t io_unsure_bytes;   /* a root could not tell its own from its children's */
	int64_t io_least[SY_USES]; /* what its processes show, all of it or not */
	bool io_unreported;	   /* and it is not all of it */
	int64_t missed_ends;	   /* tasks whose last moments the kernel did not count */
	int64_t unread_tasks;	   /* the most at once that its reading left out while they lived */
	char bpf_why[160];	   /* it does not count at all */
	bool networks_known;	   /* in which network namespaces its programs began */
	bool other_networks;	   /* some in another one than the sampler's */
	bool bpf_by_cgroup;	   /* who was moved into the job's cgroup is counted, too */
	char bpf_why_no_group[160];
	int64_t ticks, ticks_us; /* samples that its timer took, and its CPU time for that */
	bool io_unreadable;	 /* /proc/PID/io of one of them may not be read */
};

#endif
