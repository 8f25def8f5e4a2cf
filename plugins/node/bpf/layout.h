/* What the kernel's program (plugins/bpf) and its readers both know. Every change gives the pinned
 * folder another name: its own text is hashed into it. */
#ifndef STEELYARD_BPF_LAYOUT_H
#define STEELYARD_BPF_LAYOUT_H

#include <linux/types.h>

#define SY_BPF_TASKS  65536 /* of all jobs of the node at once, threads included */
#define SY_BPF_JOBS   10000
#define SY_BPF_LIST   8192 /* of one job at once, whose counters are read while they live */
#define SY_BPF_TICKS  256  /* readings of a job that wait until its sampler takes them */
#define SY_BPF_CPUS   8192 /* each has a place of its own: no kernel is built for more */
#define SY_BPF_GROUPS (4 * SY_BPF_JOBS) /* on version 1 a job has one in each hierarchy */
#define SY_BPF_MARK   248		/* the longest, with its NUL */

/* One task's, or the sum of many. */
struct sy_bpf_usage {
	__u64 cpu_ns, user_ns, system_ns;
	__u64 rchar, wchar, read_bytes, write_bytes;
	__u64 minflt, majflt;
	__u64 threads, processes;
};

struct sy_bpf_listed {
	__u64 task, born;
};

/* A job's sums at one moment. */
struct sy_bpf_tick {
	__u64 at_ns; /* monotonic clock */
	struct sy_bpf_usage used;
	__u64 processes, rss_pages, living_ns; /* of those that live; their CPU time */
	__u64 runnable;			       /* of their tasks: has a CPU or waits for one */
	__u64 unlisted; /* that live and are not in here: no room in the list */
};

/* One for each job, made by its sampler, which maps it into its memory. */
struct sy_bpf_job {
	struct sy_bpf_usage ended;	 /* of tasks that are gone for good */
	__u64 ending_begun, ending_done; /* equal: nobody is adding to it */
	__u64 tasks;			 /* of the job that live */
	__u64 lost;			 /* for which there was no room: not counted */
	__u64 unlisted;			 /* that live and are counted at their ends only */
	__u64 missed;			 /* whose last moments were not seen */
	__u64 late;			 /* reported after their begin: others may have ended */
	__u64 keepers;	       /* tasks of its sampler and of daemons of steps that live */
	__u64 since_ns;	       /* what was used before is not the job's */
	__u64 network;	       /* the namespace of the process that began it */
	__u64 other_networks;  /* programs of it that began in another one */
	__u64 ticks, ticks_ns; /* how often the timer has read it; CPU time of that */
	struct sy_bpf_tick tick[SY_BPF_TICKS];
	__u64 largest_pages[SY_BPF_CPUS]; /* the largest process that has ended there */
};

/* The timer that reads a job; taken away it ends. */
struct sy_bpf_ticker {
	__u64 timer[2]; /* struct bpf_timer of kernels that have one */
	__u64 period_ns, next_ns;
};

struct sy_bpf_ticking {
	__u64 job, period_ns; /* 0: stopped */
};

/* The job's living tasks. The reader updates the list: the timer, or no process while the timer
 * is off. */
struct sy_bpf_list {
	__u64 count, at; /* how far this reading has come */
	struct sy_bpf_tick now;
	struct sy_bpf_listed task[SY_BPF_LIST];
};

enum sy_bpf_kind {
	SY_BPF_MEMBER,
	SY_BPF_ROOT,	  /* its children are the job's, itself it is not */
	SY_BPF_STEPD,	  /* the same, and those of them that become programs of their own */
	SY_BPF_ROOT_DONE, /* further children are not followed */
	SY_BPF_CANDIDATE, /* a child of slurmstepd's that may become a program of its own */
	SY_BPF_KEEPER,	  /* the job's sampler */
	SY_BPF_STARTER,	  /* a daemon that starts tasks of several jobs; `job` is its own number */
};

#define SY_BPF_NOT_YET ((__u64)-1)

/* A task of a job; the key is its address in the kernel. */
struct sy_bpf_member {
	__u64 job, born;
	__u64 start_time; /* as the kernel has it: another one's is another task */
	/* Of its process, resident before the program that it runs: another job's, or a daemon's.
	 * SY_BPF_NOT_YET: it runs none of the job's yet. */
	__u64 before_pages;
	/* The kernel's address of its process' memory, which outlives the main thread. */
	__u64 memory;
	__u32 kind;
	__u16 unlisted, ended; /* and when it was seen last, it had used this much */
	struct sy_bpf_usage counted;
};

/* A requester is identified by its process id in its own namespace. */
struct sy_bpf_requester {
	__u32 pid, namespace;
};

struct sy_bpf_request {
	__u64 job;	 /* back: of a starter that is known already, its number */
	__u32 pid, kind; /* as the requester knows it; 0: the requester itself, or the processes in
			    the job's cgroup */
	__u64 added, faults;	 /* had by children of slurmstepd before its first task */
	__u64 found, other_jobs; /* tasks that `pid` has; those that are another job's */
};

/* A cgroup: the number of its hierarchy (version 2: 0), as in /proc/PID/cgroup, and its inode's. */
struct sy_bpf_group {
	__u64 hierarchy, id;
};

/* NAME=VALUE in the environment of whatever that starter starts for a job; and whose job it is. */
struct sy_bpf_mark {
	__u64 starter;
	char text[SY_BPF_MARK];
};

struct sy_bpf_marked {
	__u64 job;
	__u32 uid, unused;
};

struct sy_bpf_answer {
	__u64 job; /* requested */
	struct sy_bpf_usage used;
	__u64 processes, rss_pages, living_ns, runnable, unlisted; /* as in struct sy_bpf_tick */
	__u64 tasks, lost, missed, late;
	__u64 unread;  /* tasks that live and were not read */
	__u64 settled; /* no task ended while this was summed up */
};

#endif
