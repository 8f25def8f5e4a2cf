/* What the job has used, into a line of samples: CPU, I/O and memory, each from its one source or
 * its fallback (docs/sampler.md has the table): the kernel's count, the job's cgroup, its
 * processes. Totals do not go down from one sample to the next, whatever the sources. */
#ifndef STEELYARD_SAMPLER_JOB_USAGE_H
#define STEELYARD_SAMPLER_JOB_USAGE_H

#include "counters/cgroup.h"
#include "counters/processes.h"
#include "record/record.h"
#include "sampler/kernel_count.h"

/* CPU time that the processes which lived at a moment had used until then. */
struct sy_living {
	int64_t at_us, cpu_us;
};

/* What the sampling child knows of the job. */
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

/* The larger of `value` and the cell before; SY_UNKNOWN is below every value. */
void sy_job_raise_total(struct sy_line *line, const struct sy_line *before, enum sy_cell cell,
			int64_t value);

/* The same of the four of I/O. */
void sy_job_raise_io(struct sy_line *line, const struct sy_line *before,
		     const struct sy_usage *used);

/* Every step that came here has reported its final counters. */
bool sy_job_all_reported(const struct sy_job *job);

/* Read the kernel's count, which sets `by_kernel`; where it does not hold, returns the sum of the
 * last sample of the job's processes. */
struct sy_usage sy_job_read_usage(struct sy_job *job, enum sy_reading reading);

/* `total`: as sy_job_read_usage; `group_us`: CPU of the job's cgroup, or SY_UNKNOWN. */
void sy_job_read_cpu(struct sy_job *job, bool end, int64_t group_us, const struct sy_usage *total,
		     struct sy_line *line, struct sy_status *status);
void sy_job_read_io(struct sy_job *job, bool end, const struct sy_usage *total,
		    struct sy_line *line, struct sy_status *status);

/* Where the job's CPU is read. */
void sy_job_report_cpu_source(const struct sy_job *job, struct sy_status *status);

/* --- memory: the cgroup's figure at each sample and once a second at least; without a cgroup the
 * resident sets of living processes. The peak is the largest figure, and no less than the largest
 * single process. --- */

#define SY_MEMORY_PERIOD_US 1000000

/* `resident_bytes`: of its living processes, by `source`; used where there is no cgroup. */
void sy_job_read_memory(struct sy_job *job, int64_t resident_bytes, enum sy_source source,
			struct sy_line *line, struct sy_status *status);

/* The cgroup's alone, between two samples that are further apart than SY_MEMORY_PERIOD_US. */
void sy_job_read_memory_between(const struct sy_job *job, struct sy_status *status);

/* The peak of the cgroup's charge, which includes page cache. */
void sy_job_read_charged_peak(const struct sy_job *job, struct sy_status *status);

/* So much was resident at some time. */
void sy_job_note_memory(struct sy_status *status, int64_t bytes, enum sy_source source);

/* --- CPU of the job's cgroup: from when on it counts for the job, and what it has counted since.
 * Of Slurm's groups of version 2 those of the tasks are read (struct sy_step_groups). --- */

/* CPU time that it has counted, µs, or SY_UNKNOWN. */
int64_t sy_job_cgroup_us(struct sy_job *job);

/* The same, where the group may have been removed meanwhile: then it is `before_us`. */
int64_t sy_job_cgroup_last_us(struct sy_job *job, int64_t before_us, struct sy_status *status);

/* What its processes have used until now is the job's, the rest that it has counted is not. */
void sy_job_cgroup_begin_counting(struct sy_job *job);

/* A step announces the group before a process in it is the user's program, and on version 1
 * before every controller has it. A process of the job shows which controllers have it there; the
 * groups of other controllers are leftovers of an earlier job of that id. Returns whether a
 * process was checked now. */
bool sy_job_cgroup_check(struct sy_job *job);

/* Returns whether the groups of steps are read from now on, and were not before. */
bool sy_job_cgroup_find_steps(struct sy_job *job);

#endif
