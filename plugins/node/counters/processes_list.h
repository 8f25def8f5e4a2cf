/* The list of a job's processes, and what each has used. */
#ifndef STEELYARD_COUNTERS_PROCESSES_LIST_H
#define STEELYARD_COUNTERS_PROCESSES_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SY_MAX_PROCESSES 4096
#define SY_INDEX_BITS	 13 /* twice as many places */
#define SY_MAX_MARKS	 4
#define SY_MAX_WAITING	 64
#define SY_MAX_HEADS	 64
#define SY_MAX_SESSIONS	 64
#define SY_NAME_SIZE	 17 /* of a process, with its newline */

enum sy_use { SY_USE_CPU_NS, SY_USE_RCHAR, SY_USE_WCHAR, SY_USE_READ, SY_USE_WRITE, SY_USES };

struct sy_usage {
	int64_t use[SY_USES];
};

/* What every sample looks at comes first, in one cache line. */
struct sy_process {
	pid_t pid;  /* negated once a root is gone: its id may be given to another */
	bool root;  /* counts only for the children it has waited for */
	bool done;  /* a root that has reported its final counters */
	bool force; /* read it whatever its clock shows */
	bool deaf;  /* its io may not be read */
	bool gone;
	bool final;	       /* `now` was read after its end */
	bool old_stat, old_io; /* it has run since they were read */
	int stat_fd, io_fd;    /* -1: opened each time */
	int64_t clock_ns;      /* its CPU clock at the last reading */
	int64_t stat_at;       /* number of the sample that read stat; -1: none has */
	int64_t gone_at;       /* roots: `heard` when it was found gone */
	int64_t rss_bytes;
	int64_t reaped_ns;    /* CPU of children it has waited for */
	int64_t base_ns;      /* CPU before the sampler started, own and reaped */
	struct sy_usage base; /* I/O before the sampler started */
	struct sy_usage now;  /* since the sampler started; of a done root what it has reported */
};

/* By what an orphan is known that has left the tree of its job: its owner, and what is in its
 * environment, all of it; the first names the job. */
struct sy_marks {
	const char *text[SY_MAX_MARKS];
	int count;
	uid_t owner;
};

struct sy_waiting {
	pid_t pid;
	bool own; /* a child of this very daemon, not of one that has its name */
};

/* The daemon that starts the job's processes, and others', each in a session of its own. */
struct sy_starter {
	pid_t pid; /* 0: none */
	char name[SY_NAME_SIZE];
	struct sy_waiting wait[SY_MAX_WAITING]; /* its children that may become the job's */
	int waiting;
	bool found;	       /* any process of the job */
	int64_t soon_until_us; /* until then a process of the job may come at any moment */
	pid_t session[SY_MAX_SESSIONS];
	int sessions;
	int events_fd;		   /* epoll: which reports the ends of heads; 0: none */
	int head_fd[SY_MAX_HEADS]; /* pidfd */
	pid_t head[SY_MAX_HEADS];
	int heads;
};

struct sy_processes {
	int proc, loadavg; /* /proc, and the file in it */
	pid_t ours[2];	   /* the sampler's own processes: never the job's */
	pid_t keeper;	   /* the extern step's daemon, which lives as long as the job; or 0 */
	pid_t kept_place;  /* the `sleep` that this daemon has started, and nobody's work; or 0 */
	char keeper_name[SY_NAME_SIZE]; /* its own, and that of every step's daemon */
	const char *cgroup;		/* the job's, or NULL */
	struct sy_marks marks;
	struct sy_starter starter;
	bool trust_loadavg; /* it is the kernel's own, and not one of lxcfs */
	bool walk_all;	    /* the next sample looks at every process */
	bool resting;	    /* another source counts: of the job's only the roots are known */
	bool wanted;	    /* the owners of sockets are looked for all the same */
	bool named;	    /* a root or a cgroup has been given */
	bool overflowed;    /* there were more than SY_MAX_PROCESSES */
	int64_t last_pid, last_pid_before;
	int64_t start_ticks; /* when the sampler started, clock ticks since boot */
	int64_t tick_ns, page_bytes;
	int64_t sample;
	int64_t heard;	   /* how often all messages that waited had been read */
	int64_t start_us;  /* when the sampler started, monotonic */
	int64_t now_us;	   /* when this sample began */
	int64_t period_us; /* from one sample to the next, 0: not known */
	int fds_left;
	int deaf;	/* processes seen whose io could not be read */
	int open_roots; /* roots that have not reported their final counters */
	int done_roots;
	int count;
	struct sy_usage reported; /* final counters of roots, and of heads, that are gone */
	struct sy_process process[SY_MAX_PROCESSES];
	uint16_t index[1 << SY_INDEX_BITS]; /* by id: places in `process`, from 1 */
};

struct sy_process *sy_process_find(struct sy_processes *all, pid_t pid);

/* NULL when there is no room. */
struct sy_process *sy_processes_append(struct sy_processes *all, const struct sy_process *process);

/* The one that was appended last. */
void sy_processes_drop_last(struct sy_processes *all);

/* Ids or places of the list have changed. */
void sy_processes_index(struct sy_processes *all);

/* Give back the descriptors of a process. */
void sy_process_close(struct sy_processes *all, struct sy_process *process);

void sy_usage_add(struct sy_usage *sum, const struct sy_usage *more);

#endif
