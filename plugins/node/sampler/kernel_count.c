#include "sampler/kernel_count.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/exec.h"
#include "base/file.h"
#include "bpf/job.h"
#include "bpf/pins.h"
#include "counters/cgroup.h"
#include "counters/process_alive.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Where no daemon keeps it, loading adds 0.18 s to a job's start: of jobs in a row only to the
 * first one's. */
#define LINGER_S "10"

#define LOAD_LIMIT_MS 10000 /* 0.2 s, of which it waits for its lock SY_BPF_PATIENCE_MS at most */

/* As SIGCHLD is ignored, it is gone as soon as it has ended. One that hangs is left to the kernel:
 * the job must not go without its samples. */
static void wait_for_loader(pid_t pid)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int64_t until_ms = sy_now_ms(CLOCK_MONOTONIC) + LOAD_LIMIT_MS;

	while (pid > 0 && waitpid(pid, NULL, WNOHANG) == 0) {
		if (sy_now_ms(CLOCK_MONOTONIC) >= until_ms) {
			(void)kill(pid, SIGKILL);
			return;
		}
		(void)nanosleep(&pause, NULL);
	}
}

/* Why it cannot be loaded `steelyard-bpf status` reports, and not every job. Nobody waits for the
 * loader: a command's usage is that of all children that were waited for. */
static int load_program(const char *program, const char *base, struct sy_error *reason)
{
	void (*before)(int);
	pid_t pid;

	if (sy_bpf_count_jobs(base) >= 0)
		return 0;
	before = signal(SIGCHLD, SIG_IGN);
	pid = fork();
	if (pid == 0) {
		(void)signal(SIGCHLD, SIG_DFL);
		sy_keep_descriptors((const int[]){-1, -1, -1}, 3);
		(void)execl(program, "steelyard-bpf", "load", "--base", base, (char *)NULL);
		_exit(127);
	}
	wait_for_loader(pid);
	(void)signal(SIGCHLD, before);
	if (pid < 0 || sy_bpf_count_jobs(base) < 0)
		return sy_fail(reason, "%s cannot load it: `steelyard-bpf status` says why",
			       program);
	return 0;
}

/* The process has a name that distinguishes it from samplers, and none of our descriptors. */
static void start_lingering(const char *program, const char *base)
{
	char *environment[] = {NULL};

	if (fork() != 0)
		return;
	(void)setsid();
	sy_keep_descriptors((const int[]){-1, -1, -1}, 3);
	(void)execle(program, "steelyard-bpf", "sweep", "--after", LINGER_S, "--base", base,
		     (char *)NULL, environment);
	_exit(127);
}

static void sweep(const char *base)
{
	cleanup_close int lock = sy_bpf_lock(base, false, SY_BPF_PATIENCE_MS, NULL);

	if (lock >= 0)
		sy_bpf_sweep(base);
}

/* The last job has ended: on its usual place, where more may come, have it unloaded when none does
 * soon, by a process that stays behind; elsewhere all is unpinned now. */
static void release_program(const char *program, const char *base, bool more_may_come)
{
	int lingers;

	if (!more_may_come || strcmp(base, SY_BPF_BASE) != 0) {
		sweep(base);
		return;
	}
	lingers = sy_bpf_linger(base);
	if (lingers < 0) /* one does already */
		return;
	(void)close(lingers);
	start_lingering(program, base);
}

/* Bytes that a step's daemon and its own forks may add to what it reports. */
#define SLACK_BYTES 65536

static int begin(struct sy_kernel_count *kernel, const char *base, uint64_t number)
{
	return sy_bpf_begin(&kernel->bpf, base, number, SY_BPF_KEEPER, SY_BPF_PATIENCE_MS,
			    &kernel->reason);
}

void sy_kernel_count_choose_program(struct sy_sampling *sampling)
{
	static char own[4096], beside[4096];
	bool unasked = !sampling->bpf && sampling->command && geteuid() == 0;

	if (sampling->bpf && !strcmp(sampling->bpf, "no"))
		sampling->bpf = NULL;
	if (unasked && readlink("/proc/self/exe", own, sizeof(own) - 1) > 0 &&
	    sy_program_beside(own, SY_LOADER, beside, sizeof(beside)) && access(beside, X_OK) == 0)
		sampling->bpf = beside;
}

/* Only the first mark of a PBS job names the job; the others distinguish daemons on one machine. */
static void use_starter(struct sy_kernel_count *kernel, const struct sy_sampling *sampling)
{
	if (!kernel->counts || !sampling->parent || !sampling->marks.count)
		return;
	kernel->unread = sy_bpf_count_unread(&kernel->bpf);
	if (sy_bpf_mark(&kernel->bpf, sampling->parent, sampling->marks.text[0],
			sampling->owner_uid, &kernel->reason) == 0)
		kernel->starter = sampling->parent;
}

void sy_kernel_count_begin(struct sy_kernel_count *kernel, const struct sy_sampling *sampling)
{
	const char *program = sampling->bpf;
	const char *base = sampling->bpf_base ? sampling->bpf_base : SY_BPF_BASE;
	uint64_t number = sampling->control_made_ns
			      ? sy_bpf_hash_job(sampling->control, sampling->control_made_ns)
			      : 0;
	int begun;

	*kernel = (struct sy_kernel_count){.program = program};
	if (!program)
		return;
	if (geteuid() != 0)
		(void)sy_fail(&kernel->reason, "only root may have it counted");
	else if ((begun = begin(kernel, base, number)) == SY_BPF_BUSY || begun == 0)
		kernel->counts = begun == 0;
	else if (access(program, X_OK) < 0)
		(void)sy_fail_errno(&kernel->reason, errno, "%s", program);
	else
		kernel->counts = load_program(program, base, &kernel->reason) == 0 &&
				 begin(kernel, base, number) == 0;
	use_starter(kernel, sampling);
}

void sy_kernel_count_end(struct sy_kernel_count *kernel, bool more_may_come)
{
	const char *base = kernel->bpf.base;

	if (sy_bpf_end(&kernel->bpf) == 0)
		release_program(kernel->program, base, more_may_come);
}

void sy_kernel_count_own_children(struct sy_kernel_count *kernel)
{
	struct sy_error reason;

	if (kernel->counts)
		(void)sy_bpf_join(&kernel->bpf, SY_BPF_ROOT, &reason);
}

/* The first reason is the one that counts. */
static void give_up(struct sy_kernel_count *kernel, const char *reason)
{
	if (kernel->counts)
		(void)sy_fail(&kernel->reason, "%s", reason);
	kernel->counts = false;
}

void sy_kernel_count_hold(struct sy_kernel_count *kernel)
{
	if (kernel->counts)
		kernel->counts = sy_bpf_join(&kernel->bpf, SY_BPF_KEEPER, &kernel->reason) == 0;
}

bool sy_kernel_count_needs_right(const struct sy_kernel_count *kernel)
{
	return kernel->counts && geteuid() == 0 && sy_bpf_needs_right(&kernel->bpf);
}

/* What slurmstepd forks is the job's once it has executed a program. */
static bool is_stepd(pid_t pid)
{
	char path[32], name[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	return sy_read_path(path, name, sizeof(name)) > 0 && !strcmp(name, "slurmstepd\n");
}

/* False: no such process. */
static bool adopt_process(struct sy_kernel_count *kernel, pid_t pid, enum sy_bpf_kind kind,
			  int64_t faults)
{
	int found =
	    kernel->counts ? sy_bpf_adopt(&kernel->bpf, pid, kind, faults, &kernel->reason) : 1;

	kernel->counts &= found >= 0;
	return found > 0;
}

void sy_kernel_count_add_root(struct sy_kernel_count *kernel, pid_t pid, int64_t faults,
			      int64_t since_ns)
{
	bool joined =
	    kernel->counts && since_ns > 0 && (uint64_t)since_ns == kernel->bpf.mapped->since_ns;

	kernel->named = true;
	if (!joined &&
	    !adopt_process(kernel, pid, is_stepd(pid) ? SY_BPF_STEPD : SY_BPF_ROOT, faults))
		give_up(kernel, "a step had ended before it was reported");
}

void sy_kernel_count_end_root(struct sy_kernel_count *kernel, pid_t pid)
{
	if (!kernel->named) /* what it has started is not known */
		give_up(kernel, "a step was not reported before it ended");
	(void)adopt_process(kernel, pid, SY_BPF_ROOT_DONE, -1);
}

void sy_kernel_count_use_cgroup(struct sy_kernel_count *kernel, int root, const char *path,
				const struct sy_sampling *sampling)
{
	if (!kernel->counts)
		return;
	kernel->grouped = sy_bpf_group(&kernel->bpf, root, path, &kernel->no_group_reason) == 0;
	if (!kernel->grouped || kernel->named || sampling->parent)
		return;
	kernel->named = true;
	kernel->counts = sy_bpf_adopt_group(&kernel->bpf, &kernel->reason) >= 0;
}

void sy_kernel_count_begun_in_time(struct sy_kernel_count *kernel)
{
	if (kernel->starter || kernel->grouped)
		kernel->named = true;
	else
		kernel->counts = false; /* the reason is known */
}

void sy_kernel_count_check_begin(struct sy_kernel_count *kernel)
{
	if (kernel->starter && !kernel->named)
		give_up(kernel, "the job may have begun before the sampler had answered");
}

void sy_kernel_count_add_process(struct sy_kernel_count *kernel, pid_t pid)
{
	if (kernel->counts && !adopt_process(kernel, pid, SY_BPF_MEMBER, -1))
		give_up(kernel, "what pbs_attach brought had ended before it was reported");
}

/* Without a cgroup tasks of PBS are known by the daemon that starts them. */
static bool misses_tasks(struct sy_kernel_count *kernel)
{
	if (!kernel->starter || kernel->grouped)
		return false;
	if (!sy_process_lives(kernel->starter))
		give_up(kernel, "pbs_mom was started anew, and the job has no cgroup there");
	else if (sy_bpf_count_unread(&kernel->bpf) != kernel->unread)
		give_up(kernel, "pbs_mom started a program of a job's as root, or one whose "
				"environment could not be read, and the job has no cgroup there");
	return !kernel->counts;
}

bool sy_kernel_count_read(struct sy_kernel_count *kernel, enum sy_bpf_patience patience)
{
	bool last = patience == SY_BPF_LAST;
	int result;

	if (!kernel->counts || !kernel->named || misses_tasks(kernel))
		return false;
	result = sy_bpf_read(&kernel->bpf, patience, &kernel->now);
	if (result < 0)
		give_up(kernel, result == -EPERM ? "bpf(2) is refused to a sampler"
						 : "its maps could not be read");
	else if (!sy_bpf_is_possible(&kernel->bpf, &kernel->now.used,
				     (uint64_t)sy_now_ns(CLOCK_MONOTONIC)))
		give_up(kernel, "it had more CPU time than all processors can have given");
	else if (kernel->now.lost)
		give_up(kernel, "there was no room for all tasks");
	else if (kernel->now.late)
		give_up(kernel, "a step was reported when a program of the step's had begun");
	else if (last && kernel->now.unlisted)
		give_up(kernel, "at the job's last reading it had more tasks than are read");
	else if (last && (kernel->now.unread || !kernel->now.settled))
		give_up(kernel, "tasks were still ending at the job's last reading");
	return kernel->counts;
}

struct sy_usage sy_kernel_count_usage(const struct sy_kernel_count *kernel)
{
	const struct sy_bpf_usage *used = &kernel->now.used;

	return (struct sy_usage){{(int64_t)used->cpu_ns, (int64_t)used->rchar, (int64_t)used->wchar,
				  (int64_t)used->read_bytes, (int64_t)used->write_bytes}};
}

void sy_kernel_count_report(const struct sy_kernel_count *kernel, struct sy_status *status)
{
	bool gave_up = !kernel->counts && !status->bpf_reason[0];
	bool known = kernel->counts && kernel->named;
	const struct sy_bpf_usage *used = &kernel->now.used;
	const struct sy_bpf_job *mapped = kernel->bpf.mapped;

	status->minor_faults = known ? (int64_t)used->minflt : SY_UNKNOWN;
	status->major_faults = known ? (int64_t)used->majflt : SY_UNKNOWN;
	status->missed_ends = kernel->counts && mapped ? (int64_t)mapped->missed : 0;
	status->bpf_by_cgroup = kernel->counts && kernel->grouped;
	status->networks_known = known && mapped && mapped->network;
	status->other_networks = mapped && mapped->other_networks;
	(void)snprintf(status->bpf_no_group_reason, sizeof(status->bpf_no_group_reason), "%.159s",
		       kernel->no_group_reason.text);
	status->ticks = mapped ? (int64_t)mapped->ticks : 0;
	status->ticks_us = mapped ? (int64_t)mapped->ticks_ns / 1000 : 0;
	if (gave_up)
		(void)snprintf(status->bpf_reason, sizeof(status->bpf_reason), "%.159s",
			       kernel->reason.text);
}

static const char *const use_units[SY_USES] = {[SY_USE_CPU_NS] = "ns of CPU",
					       [SY_USE_RCHAR] = "bytes read",
					       [SY_USE_WCHAR] = "bytes written",
					       [SY_USE_READ] = "bytes from storage",
					       [SY_USE_WRITE] = "bytes to storage"};

static void give_up_by_report(struct sy_kernel_count *kernel, enum sy_use use, int64_t reported,
			      int64_t counted)
{
	char reason[160];

	(void)snprintf(reason, sizeof(reason),
		       "steps have reported more than it had counted: %lld, not %lld %s",
		       (long long)reported, (long long)counted, use_units[use]);
	give_up(kernel, reason);
}

bool sy_kernel_count_confirm(struct sy_kernel_count *kernel, const struct sy_usage *reported)
{
	struct sy_usage counted = sy_kernel_count_usage(kernel);

	for (int i = 0; i < SY_USES; i++) {
		int64_t most = i == SY_USE_CPU_NS
				   ? 1000 * sy_agreement_us(counted.use[i] / 1000)
				   : SLACK_BYTES + counted.use[i] / SY_AGREEMENT_SHARE;

		/* Of reads a report may hold the daemon's own: all of /proc, some 100 kB a poll. */
		if (i != SY_USE_RCHAR && reported->use[i] > counted.use[i] + most)
			give_up_by_report(kernel, (enum sy_use)i, reported->use[i], counted.use[i]);
	}
	return kernel->counts;
}

void sy_kernel_count_split(const struct sy_kernel_count *kernel, struct sy_status *status)
{
	int64_t cpu_us = status->sums.last.cell[SY_CPU];

	status->user_us = sy_bpf_split_user(&kernel->now.used, cpu_us);
	status->system_us = cpu_us - status->user_us;
}
