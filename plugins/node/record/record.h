/* The record of a job on a node (docs/formats.md part 1), as a JSON document, and all that goes
 * into it.
 *
 * A sampler makes it at the job's start: the probe, what the job was started with, every total
 * null, `complete` false. At the end the sampler's parent puts in the totals of the samples
 * and what its child knew beside them (end.c, connections.c, meters.c, gpus.c), the network
 * conditions (conditions.c), and whether all of the job was seen (completeness.c), and writes it
 * once more (record_files.h). A sampler that was killed leaves a mark in RUN_DIR
 * (unfinished_records.h); the job's end, the next job on the node, or slurmd's start rebuilds the
 * totals from its samples, and the record says that it is not complete. A reboot removes the mark:
 * then `steelyard-node record
 * --samples` does it, by hand.
 *
 * It promises: a record is on disk from the job's start, whole or not at all; each null has its
 * reason under `missing`. It knows no scheduler: message_grammar.h has the words by which plugins
 * and prologues set the job's fields and tags. */
#ifndef STEELYARD_RECORD_RECORD_H
#define STEELYARD_RECORD_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/samples.h"
#include "counters/cgroup.h"
#include "counters/child_processes.h"
#include "counters/job_connections.h"
#include "counters/node.h"
#include "meters/meters.h"
#include "record/message_grammar.h"

#define SY_MAX_ROOTS 64

/* What a sampler was started for: whose job it measures, how often, and where the record goes. */
struct sy_sampling {
	const char *record_dir, *job_id, *node, *control, *root_dir;
	const char *spool_dir;		    /* for records that record_dir cannot have */
	const char *bpf, *bpf_base;	    /* steelyard-bpf ("no": none), where it pins; or NULL */
	const char *run_dir;		    /* of network conditions, or NULL */
	int control_fd;			    /* already bound, or -1 */
	unsigned long long control_made_ns; /* its name; 0: unknown */
	int64_t launched_us;		    /* by CLOCK_MONOTONIC; 0: unknown */
	int print_fd;			    /* where the record's path goes, or -1 */
	double rate_hz;
	pid_t root[SY_MAX_ROOTS];
	int roots;
	pid_t process; /* that runs already: it and its descendants, to its end; 0: none */
	pid_t watch;   /* 0: nobody */
	pid_t parent;  /* a daemon whose marked children are the job's; 0: none */
	int linger_s;  /* how long to wait for a message after the daemon and the job have ended */
	bool has_owner;
	uid_t owner_uid;
	gid_t owner_gid;
	struct sy_marks marks; /* of orphans */
	struct sy_job_notes notes;
	char **command; /* or NULL: attached to a job that others start */
};

#define SY_NOTES_SIZE 65536 /* messages about the job, on their way to its record */

/* The sampling child's state as of its last sample, in addition to the samples. */
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
	bool begun_late;    /* the job's begin was not reported */
	int64_t
	    opening_us;	 /* the record folder did not answer for so long at the begin; 0: it did */
	int64_t late_us; /* from its launch to its first sample, where that was long; else 0 */
	int64_t stalled_us; /* and when the job ended */
	bool watch_lost; /* the process that should have reported the job's end was gone without a
			    report */
	struct sy_tcp_status tcp;
	int64_t group_us;	   /* CPU that the job's cgroup has counted, and of it what */
	int64_t gap_us;		   /* no step has reported; SY_UNKNOWN: not compared */
	bool by_marks;		   /* no step reports: the job's processes are known by marks */
	int64_t lost_tasks;	   /* of such a job: they ended before their counters were read */
	bool group_gone;	   /* the cgroup went before it could be read for the last time */
	bool unsettled;		   /* tasks were just ending at the last reading */
	int64_t survivors;	   /* processes that were still at work when the job ended */
	bool io_inseparable;	   /* a step did not report bytes: its daemon's were among them */
	int64_t io_least[SY_USES]; /* what its processes show, all of it or not */
	bool io_unreported;	   /* and it is not all of it */
	int64_t missed_ends;	   /* tasks whose last moments the kernel did not count */
	int64_t unread_tasks;	   /* the most at once that its reading left out while they lived */
	char bpf_reason[160];	   /* it does not count at all */
	bool networks_known;	   /* in which network namespaces its programs began */
	bool other_networks;	   /* some in another one than the sampler's */
	bool bpf_by_cgroup; /* processes that were moved into the job's cgroup are counted, too */
	char bpf_no_group_reason[160];
	int64_t ticks, ticks_us; /* samples that its timer took, and its CPU time for that */
	bool io_unreadable;	 /* /proc/PID/io of one of them may not be read */
	bool proc_is_foreign;	 /* none of them could be read: /proc is of another namespace */
};

/* What is known at the job's start. */
struct sy_head {
	const struct sy_sampling *sampling;
	const struct sy_node *node;
	int64_t start_unix_s;
	const char *samples_file;					/* NULL: no samples */
	int64_t dropped_rx[SY_MAX_DEVICES], dropped_tx[SY_MAX_DEVICES]; /* at the start */
	json_t *probe;							/* NULL: not made yet */
};

/* The record as it is at the start: complete is false, totals are null. */
json_t *sy_record_new(const struct sy_head *head);

/* Why the record has no "cache" or "network_conditions": the reported reason, else `otherwise`. */
const char *sy_record_unmet(const struct sy_sampling *sampling, const char *field,
			    const char *otherwise);

/* Complete, when `reason` is NULL. */
void sy_record_complete(json_t *record, const char *reason);

/* The labels of zones and devices, as they stand in a record. */
void sy_record_labels(const json_t *record, struct sy_labels *labels);

/* The cgroup has counted more CPU than steps have reported, beyond what the two may differ by; or
 * the sampler came too late for a task of a PBS job, however little CPU that used. */
bool sy_has_gap(const struct sy_status *status);

/* Of a command: samples, or the kernel, show more than was waited for. */
bool sy_exact_lacks(const struct sy_exact *exact, const struct sy_status *status);

/* completeness.c: whether a record covers the whole job, and if not, what of it and why; `exact` is
 * of a command, or NULL; `ended` is the child's status. */
void sy_record_completeness(json_t *record, const struct sy_status *status,
			    const struct sy_exact *exact, pid_t child, int ended);

/* conditions.c: the conditions of the network that run_dir has for this job, with their tag; the
 * state is removed there. */
void sy_record_conditions(json_t *record, const struct sy_sampling *sampling);

/* On a shared node traffic of the job's own containers is not shaped: if there was some, its
 * conditions are not valid; if that is unknown, a note states it. */
void sy_record_unshaped(json_t *record, const struct sy_status *status);

/* The same for a record whose sampler was killed: what was there is kept where nothing is found. */
void sy_record_recover_conditions(json_t *record, const struct sy_sampling *sampling);

/* end.c: put in the totals of all samples so far. */
void sy_record_totals(json_t *record, const struct sy_sums *sums);

/* And what else the child knew, and what the parent does. */
void sy_record_status(json_t *record, const struct sy_status *status);
void sy_record_exact(json_t *record, const struct sy_exact *exact, const struct sy_status *status);
void sy_record_dropped(json_t *record, const struct sy_head *head);

/* Of a job that the kernel was to count: how well, or why not. */
void sy_record_in_kernel(json_t *record, const struct sy_status *status);

/* connections.c: the job's own TCP connections, as far as the child got; or none of it, and why. */
void sy_record_tcp(json_t *record, const struct sy_tcp_status *tcp,
		   const struct sy_tcp_counts *counts);
void sy_record_no_tcp(json_t *record, const char *reason);

/* null for SY_UNKNOWN; µs or µJ become seconds or joules. */
json_t *sy_count_or_null(int64_t value);
json_t *sy_micro_or_null(int64_t value);

/* Values that only samples have are null where sampling was switched off; a maximum of two
 * moments is none. Call it before exact values are put in. */
void sy_record_off(json_t *record, const struct sy_status *status);

/* gpus.c: energy.zones[].of_job and energy.gpus, as far as they are known; zones and notes about
 * the job are in the record. */
void sy_record_gpus(json_t *record, const struct sy_meters *meters,
		    const struct sy_job_notes *notes);

/* Whether the node has any: where it has none nobody need say how much they used. */
bool sy_has_gpus(const struct sy_meters *meters);

/* The energy of the job's GPUs so far from the readings of all meters, in µJ; SY_UNKNOWN. */
int64_t sy_gpu_energy_uj(const struct sy_meters *meters, const struct sy_job_notes *notes,
			 const int64_t zone_uj[]);

/* energy.gpu_energy_j, of what the zones have. */
void sy_record_gpu_energy(json_t *record);

/* meters.c: the meters as they are at the start, none with a value; why the node has no energy. */
void sy_record_meters(json_t *record, const struct sy_meters *meters,
		      const struct sy_labels *labels);

/* What only the sampler knows at the end. */
void sy_record_meters_end(json_t *record, const struct sy_status *status,
			  const char reason[][SY_REASON_SIZE]);

#endif
