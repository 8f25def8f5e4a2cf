/* The table of a job's processes, and what each has used: /proc/PID/stat, /proc/PID/io and its CPU
 * clock, which shows at a tenth of the price whether anything has changed.
 *
 * A process of the table is a root (only the children that it has waited for count), or counts
 * itself and those children. One that is older than the sampler counts from then on. */
#ifndef STEELYARD_COUNTERS_PROCESS_TABLE_H
#define STEELYARD_COUNTERS_PROCESS_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SY_MAX_PROCESSES 4096
#define SY_INDEX_BITS	 13 /* twice as many slots */
#define SY_MAX_MARKS	 4
#define SY_MAX_UNDECIDED 64
#define SY_MAX_TASKS	 64
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
	bool io_unreadable;
	bool is_zombie; /* it has ended, and nobody has waited for it */
	bool gone;
	bool final;	       /* `now` was read after its end */
	bool old_stat, old_io; /* it has run since they were read */
	int stat_fd, io_fd;    /* -1: opened each time */
	int64_t clock_ns;      /* its CPU clock at the last reading */
	int64_t stat_at;       /* number of the sample that read stat; -1: none has */
	int64_t gone_at;       /* roots: `messages_read` when it was found gone */
	int64_t rss_bytes;
	int64_t reaped_ns;    /* CPU of children it has waited for */
	int64_t base_ns;      /* CPU before the sampler started, own and reaped */
	struct sy_usage base; /* I/O before the sampler started */
	struct sy_usage now;  /* since the sampler started; of a done root what it has reported */
};

/* NAME=VALUE in the environment of a job's processes, and their owner. All together mark a process;
 * the first names the job. */
struct sy_marks {
	const char *text[SY_MAX_MARKS];
	int count;
	uid_t owner;
};

/* A child of the PBS daemon that may become a task of the job. */
struct sy_undecided {
	pid_t pid;
	bool is_child; /* of this daemon, not of its successor */
};

/* A task that the PBS daemon has started, and will wait for. */
struct sy_task {
	pid_t pid;
	int fd; /* pidfd */
};

/* The PBS daemon: it starts this job's processes, and others', each in its own session. */
struct sy_starter {
	pid_t pid; /* 0: none */
	char name[SY_NAME_SIZE];
	bool found;		 /* any process of the job */
	int64_t expect_until_us; /* until then a task may begin at any moment */
	int events_fd;		 /* epoll, which reports the ends of tasks; 0: none */
	int undecided, tasks;
	int lost; /* tasks whose last counters were not read before they were waited for */
	struct sy_undecided child[SY_MAX_UNDECIDED];
	struct sy_task task[SY_MAX_TASKS];
};

struct sy_processes {
	int proc, loadavg;   /* /proc, and the file in it */
	pid_t ours[2];	     /* the sampler's own processes: never the job's */
	pid_t extern_daemon; /* the extern step's, which lives as long as the job; or 0 */
	pid_t extern_sleep;  /* the `sleep` that it has started, which is no work; or 0 */
	char daemon_name[SY_NAME_SIZE]; /* of every step's daemon */
	const char *cgroup;		/* the job's, or NULL */
	struct sy_marks marks;
	struct sy_starter starter;
	pid_t session[SY_MAX_SESSIONS];
	int sessions;
	bool trust_loadavg;    /* it is the kernel's own, and not one of lxcfs */
	bool proc_is_foreign;  /* /proc shows another PID namespace: no process can be read */
	bool walk_all;	       /* the next sample looks at every process */
	bool roots_only;       /* another source counts: only roots are kept */
	bool find_sockets;     /* all are kept nevertheless, for the owners of sockets */
	bool has_group_memory; /* their cgroup's memory counts, not theirs */
	bool named;	       /* a root or a cgroup has been given */
	bool overflowed;       /* there were more than SY_MAX_PROCESSES */
	int64_t last_pid, last_pid_before;
	int64_t start_ticks; /* when the sampler started, clock ticks since boot */
	int64_t tick_ns, page_bytes;
	int64_t sample;
	int64_t messages_read; /* how often all messages that waited had been read */
	int64_t start_us;      /* when the sampler started, monotonic */
	int64_t now_us;	       /* when this sample began */
	int64_t period_us;     /* from one sample to the next, 0: not known */
	int fds_after;
	int io_unreadable; /* processes seen whose io could not be read */
	int open_roots;	   /* roots that have not reported their final counters */
	int done_roots;
	int count;
	struct sy_usage reported; /* final counters of roots and tasks that are gone */
	struct sy_process process[SY_MAX_PROCESSES];
	uint16_t index[1 << SY_INDEX_BITS]; /* by id: places in `process`, from 1 */
};

struct sy_process *sy_process_find(struct sy_processes *all, pid_t pid);

/* A new one, read once: NULL when it is gone already, or there is no room. */
struct sy_process *sy_process_add(struct sy_processes *all, pid_t pid, bool root);

/* Counts only for the children it has waited for, from now on. */
void sy_process_make_root(struct sy_processes *all, struct sy_process *process);

/* Ids or places have changed. */
void sy_processes_index(struct sy_processes *all);

/* Give back the descriptors of a process. */
void sy_process_close(struct sy_processes *all, struct sy_process *process);

void sy_usage_add(struct sy_usage *sum, const struct sy_usage *more);

/* The CPU clock of a process, ns; -1 when there is none of that id (threads have none). */
int64_t sy_process_clock_ns(pid_t pid);

/* What of a process that has run is read again. */
struct sy_turn {
	bool stat, io;
};

#define SY_EVERYTHING ((struct sy_turn){true, true})

/* Read one process; marks it `gone` when it is. */
void sy_process_read(struct sy_processes *all, struct sy_process *process, struct sy_turn turn);

/* Read only its clock, after all others were read; marks it `gone` when it is. */
void sy_process_check(struct sy_process *process);

/* Read PID/FILE once, into `buffer`: its length, or -errno. `fd` keeps it open, when it may. */
ssize_t sy_process_file(struct sy_processes *all, pid_t pid, const char *file, int *fd,
			char *buffer, size_t size);

#endif
