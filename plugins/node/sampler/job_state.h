/* What the sampling child knows of the job: its processes, its cgroup, the kernel's count. */
#ifndef STEELYARD_SAMPLER_JOB_STATE_H
#define STEELYARD_SAMPLER_JOB_STATE_H

#include "counters/cgroup.h"
#include "counters/processes.h"
#include "counters/step_cgroups.h"
#include "record/record.h"
#include "sampler/kernel_count.h"

/* CPU time that the processes which lived at a moment had used until then. */
struct sy_living {
	int64_t at_us, cpu_us;
};

struct sy_job {
	struct sy_living living[2]; /* counted by the kernel: the later first, REST_US apart */
	struct sy_processes processes;
	struct sy_cgroup cgroup;
	struct sy_step_groups steps;
	struct sy_kernel_count *kernel;
	bool by_kernel;	    /* the kernel has counted all of it, as of the last reading */
	int root;	    /* below which the cgroup's files are */
	bool by_steps;	    /* CPU is read where only the tasks of its steps are */
	bool group_checked; /* a process of the job has shown which controllers have it in there */
	bool group_counts;  /* the cgroup's CPU counts for the job, from a known beginning */
	bool group_unused;  /* when it was read last it had counted nothing */
	bool end_requested; /* by the process that named the job: its later work is not the job's */
	int64_t counted_us; /* by the cgroup, before any task of the job began; or SY_UNKNOWN */
	int64_t period_us;  /* from one sample to the next; 0: totals alone */
	bool exact;	    /* the counters of a command that has ended are known */
};

/* A sample that was due, and may repeat what was read a moment ago; one that a message requests;
 * the last one, which reads everything. */
enum sy_reading { SY_READING_DUE, SY_READING_NOW, SY_READING_LAST };

#endif
