/* What the sampling child knows of the job: its processes, its cgroup, the kernel's count. */
#ifndef STEELYARD_SAMPLER_JOB_STATE_H
#define STEELYARD_SAMPLER_JOB_STATE_H

#include "base/line.h"
#include "counters/cgroup.h"
#include "counters/cpu_guard.h"
#include "counters/processes.h"
#include "counters/step_groups.h"
#include "counters/unseen.h"
#include "record/sampling.h"
#include "record/status.h"
#include "sampler/in_kernel.h"

/* What those that lived at a moment had used until then. */
struct sy_moment {
	int64_t at_us, living_us;
};

struct sy_job {
	struct sy_moment
	    seen[2]; /* counted by the kernel: the later first, REST_US apart at least */
	struct sy_processes processes;
	struct sy_cgroup cgroup;
	struct sy_cpu_guard guard;
	struct sy_unseen unseen;
	struct sy_step_groups steps;
	struct sy_in_kernel *kernel;
	bool kernel_counts; /* and has, at this reading, of all its processes */
	bool counted;	    /* so it is the kernel alone who is asked (counted.h) */
	int root;	    /* below which the group's files are */
	bool by_steps;	    /* CPU is read where only the tasks of its steps are */
	bool groups_asked;  /* a process of the job has told which controllers have it in there */
	bool group_in_use;  /* when its cgroup was read last, somebody was in it */
	bool group_unused;  /* then it had counted nothing */
	int64_t period_us;  /* from one sample to the next; 0: totals alone */
	bool end_is_told;   /* by whoever has named it: what comes then is not the job's */
	bool exact;	    /* the counters of a command that has ended are known */
};

/* A sample that was due, and may repeat what was read a moment ago; somebody wants to know now; the
 * last one, which reads all of all. */
enum sy_look { SY_LOOK_DUE, SY_LOOK_NOW, SY_LOOK_LAST };

/* Its processes are the descendants of `pid`. `faults`: as sy_in_kernel_root. */
void sy_job_root(struct sy_job *job, pid_t pid, int64_t faults, int64_t since_ns);

/* Every step that came here has told its final counters. */
bool sy_job_all_told(const struct sy_job *job);

/* It has ended, nobody told its end, and it is in no group: who lives on is ended by nobody. */
bool sy_job_is_left_alone(const struct sy_job *job, bool end);

/* At rate 0 no sample sees processes that come and go: only what their steps have reported is
 * known.
 */
bool sy_job_processes_are_known(const struct sy_job *job);

/* Totals do not go down, whatever the sources: SY_UNKNOWN is below every value. */
void sy_job_set(struct sy_line *line, const struct sy_line *before, enum sy_cell cell,
		int64_t value);

/* What is known of its processes: counted by the kernel, or summed up here. */
struct sy_usage sy_job_usage(struct sy_job *job, bool end);

#endif
