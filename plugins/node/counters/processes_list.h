/* The list of a job's processes, and what each has used. */
#ifndef STEELYARD_COUNTERS_PROCESSES_LIST_H
#define STEELYARD_COUNTERS_PROCESSES_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "counters/thread_io.h"
#include "counters/unseen.h"
#include "counters/unwaited.h"

#define SY_MAX_PROCESSES      4096
#define SY_INDEX_BITS	      13 /* twice as many places */
#define SY_MAX_MARKS	      4
#define SY_MAX_OTHERS	      256
#define SY_MAX_OTHER_SESSIONS 64
#define SY_MAX_WAITING	      64
#define SY_MAX_HEADS	      64
#define SY_MAX_SESSIONS	      64
#define SY_NAME_SIZE	      17 /* of a process, with its newline */
#define SY_THREADED_ROOTS     64 /* steps at once; of more, I/O is known at their ends */
/* What a step's daemon itself may write while its step runs is allowed for (docs/calibrate.md). */
#define SY_UNSURE_BYTES 1000

enum sy_use { SY_USE_CPU_NS, SY_USE_RCHAR, SY_USE_WCHAR, SY_USE_READ, SY_USE_WRITE, SY_USES };

struct sy_usage {
	int64_t use[SY_USES];
};

/* What every sample looks at comes first, in one cache line. */
struct sy_process {
	pid_t pid, parent; /* parent 0: not one of ours, or not known */
	bool root;	   /* counts only for the children it has waited for */
	bool done;	   /* a root whose final counters have been told */
	bool promised;	   /* a root that tells them at its end, as a step's daemon does */
	bool force;	   /* read it whatever its clock says */
	bool deaf;	   /* its io may not be read */
	bool known;	   /* it was seen before this sample */
	bool gone;
	bool head;	       /* of nobody's tree: a scheduler's daemon has started it */
	bool final;	       /* it was read after its end, and before it was waited for */
	bool ended;	       /* so stat says */
	bool of_daemon;	       /* a fork of a step's daemon, which has not become a task */
	bool inherits;	       /* its parent has gone: look for the new one */
	bool old_stat, old_io; /* it has run since they were read */
	bool bereaved;	       /* `lost` holds something */
	bool in_group;	       /* a root: it lies in the job's cgroup itself */
	int group_asked;       /* how often that was looked up */
	bool unsure;	       /* some of it may be another's to show */
	int tasks;	       /* its threads when stat was read */
	bool stands_behind;    /* a child of it stands before it in the list */
	bool out_of_turn;      /* read after its children were */
	bool moved;	       /* `now` may differ from `before` */
	int stat_fd, io_fd;    /* -1: opened each time */
	int64_t clock_ns;      /* its CPU clock at the last reading */
	int64_t stat_at;       /* number of the sample that read stat */
	int64_t own_ns;	       /* a root in the cgroup: its own CPU */
	int64_t worked_us;     /* when it was last found to have done something */
	int64_t stat_us;       /* when that was */
	int64_t veiled_at;     /* roots: the sample that could not tell their own I/O apart */
	int64_t gone_at;       /* roots: `heard` when it was found gone */
	int64_t rss_bytes;
	struct sy_usage now;	  /* since the sampler started */
	struct sy_usage before;	  /* `now` a sample ago, and of the lost what is told */
	int64_t reaped_ns;	  /* CPU of children it has waited for */
	int64_t reaped_before_ns; /* as `before` */
	int64_t reaped_faults;	  /* page faults of theirs: an exact count, unlike the ticks */
	int64_t reaped_faults_before;
	int64_t faults;		 /* since it began, own and reaped */
	int64_t shown_faults;	 /* of the reaped ones, those of children that were known */
	int64_t base_ns;	 /* CPU before the sampler started, own and reaped */
	struct sy_usage base;	 /* I/O before the sampler started */
	struct sy_usage lost;	 /* of children gone since the last sample */
	struct sy_gone children; /* who these were */
	struct sy_gone others;	 /* below a child that is gone: another may have adopted them */
	struct sy_gone doubtful; /* a root: those for whom it was gone before it was asked */
	struct sy_usage kept;	 /* roots: of children, what its final counters may tell */
	struct sy_thread_io *threads; /* roots: their own I/O; NULL: not looked at yet */
};

/* By what an orphan is known that has left the tree of its job: its owner, and what stands in its
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
	int events_fd;		   /* epoll: where the ends of heads are told; 0: nowhere */
	int head_fd[SY_MAX_HEADS]; /* pidfd */
	pid_t head[SY_MAX_HEADS];
	int heads;
};

struct sy_session {
	pid_t id; /* 0: the place is free */
	bool others;
};

/* What is known of processes that are not the job's. */
struct sy_others {
	pid_t pid[SY_MAX_OTHERS],
	    before[SY_MAX_OTHERS]; /* seen in this sample, in the one before */
	int count, before_count;
	struct sy_session session[SY_MAX_OTHER_SESSIONS];
	int next;
};

struct sy_processes {
	int proc, loadavg; /* /proc, and the file in it */
	pid_t ours[2];	   /* the sampler's own processes: never the job's */
	pid_t keeper;	   /* a daemon that keeps the job's place, as the extern step's; or 0 */
	pid_t kept_place;  /* the `sleep` that this daemon has started, and nobody's work; or 0 */
	char keeper_name[SY_NAME_SIZE]; /* its own, and that of every step's daemon */
	const char *cgroup;		/* the job's, or NULL */
	struct sy_marks marks;
	struct sy_starter starter;
	bool trust_loadavg; /* it is the kernel's own, and not one of lxcfs */
	bool walk_all;	    /* the next sample looks at every process */
	bool resting;	    /* somebody else counts: of the job's only the roots are known */
	bool wanted;	    /* somebody looks for the owners of sockets all the same */
	bool named;	    /* a root or a cgroup has been given */
	bool new_parents;   /* a process was added that may be another's parent */
	bool orphaned;	    /* some that are gone had children */
	bool overflowed;    /* there were more than SY_MAX_PROCESSES */
	int64_t last_pid, last_pid_before;
	int64_t start_ticks; /* when the sampler started, clock ticks since boot */
	int64_t tick_ns, page_bytes;
	bool coarse_clock; /* clocks of processes count whole ticks, and others' time (UML) */
	int64_t sample;
	int64_t heard;	   /* how often all messages that waited had been read */
	int64_t start_us;  /* when the sampler started, monotonic */
	int64_t now_us;	   /* when this sample began */
	int64_t before_us; /* and the one before */
	int64_t since_us; /* what was found may have been used from then on; set anew by who asks */
	int64_t period_us; /* from one sample to the next, 0: not known */
	int fds_left;
	struct sy_gone unwaited;   /* for whom nobody of ours has waited */
	struct sy_daemons daemons; /* those in the cgroup that are gone */
	int64_t keeper_ns;	   /* its own CPU */
	bool keeper_in_group;
	int deaf;	/* processes seen whose io could not be read */
	int open_roots; /* roots without their final counters */
	int done_roots;
	int count;
	struct sy_others others;
	struct sy_usage kept; /* of what is gone */
	struct sy_usage told; /* of that, the final counters of roots */
	struct sy_thread_io threads[SY_THREADED_ROOTS];
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

/* What was found just now may have been used from `us` on. */
void sy_processes_used_since(struct sy_processes *all, int64_t us);

/* Where a new one may be the parent of those whose parent is not known, they are read again. */
void sy_processes_look_for_parents(struct sy_processes *all);

/* Give back the descriptors of a process. */
void sy_process_close(struct sy_processes *all, struct sy_process *process);

/* When it was seen last, at `seen_us`, it had not rested yet for as long as from one sample to the
 * next, some of which come right after another, nor for a tenth of a second. */
bool sy_process_is_at_work(const struct sy_processes *all, const struct sy_process *process,
			   int64_t seen_us);

void sy_usage_add(struct sy_usage *sum, const struct sy_usage *more);

#endif
