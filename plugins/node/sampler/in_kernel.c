#include "sampler/in_kernel.h"

#include "base/file.h"
#include "bpf/place.h"
#include "sampler/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between two readings of the same; the daemon of a step forks what is no task, too. */
#define SLACK_NS    100000000
#define SLACK_BYTES 65536
#define SHARE	    50 /* one part in so many */

/* It takes 0.03 s on a quiet machine. Why it cannot be had `steelyard-bpf status` says, and not
 * every job. */
static int load(const char *program, const char *base, struct sy_error *why)
{
	int how = 0;
	pid_t pid = fork();

	if (pid == 0) {
		sy_keep_out_of_the_way();
		(void)execl(program, "steelyard-bpf", "load", "--base", base, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &how, 0) < 0 || how != 0)
		return sy_fail(why, "%s cannot load it: `steelyard-bpf status` says why", program);
	return 0;
}

void sy_in_kernel_begin(struct sy_in_kernel *kernel, const char *program, const char *base)
{
	*kernel = (struct sy_in_kernel){0};
	if (!program)
		return;
	if (!base)
		base = SY_BPF_BASE;
	if (geteuid() != 0)
		(void)sy_fail(&kernel->why, "only root may have it counted");
	else if (sy_bpf_begin(&kernel->bpf, base, &kernel->why) == 0)
		kernel->counts = true;
	else if (access(program, X_OK) < 0)
		(void)sy_fail_errno(&kernel->why, errno, "%s", program);
	else
		kernel->counts = load(program, base, &kernel->why) == 0 &&
				 sy_bpf_begin(&kernel->bpf, base, &kernel->why) == 0;
}

void sy_in_kernel_end(struct sy_in_kernel *kernel)
{
	sy_bpf_end(&kernel->bpf);
}

/* The first reason is the one that counts. */
static void give_up(struct sy_in_kernel *kernel, const char *why)
{
	if (kernel->counts)
		(void)sy_fail(&kernel->why, "%s", why);
	kernel->counts = false;
}

void sy_in_kernel_keep(struct sy_in_kernel *kernel)
{
	if (kernel->counts)
		kernel->counts = sy_bpf_keep(&kernel->bpf, &kernel->why) == 0;
}

/* What slurmstepd forks is the job's once it has become a program. */
static bool is_stepd(pid_t pid)
{
	char path[32], name[32];
	cleanup_close int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && sy_read_fd(fd, name, sizeof(name)) > 0 && !strcmp(name, "slurmstepd\n");
}

static void adopt(struct sy_in_kernel *kernel, pid_t pid, enum sy_bpf_kind kind, int64_t faults)
{
	if (kernel->counts)
		kernel->counts = sy_bpf_adopt(&kernel->bpf, pid, kind, faults, &kernel->why) == 0;
}

void sy_in_kernel_root(struct sy_in_kernel *kernel, pid_t pid, int64_t faults)
{
	kernel->named = true;
	adopt(kernel, pid, is_stepd(pid) ? SY_BPF_STEPD : SY_BPF_ROOT, faults);
}

void sy_in_kernel_done(struct sy_in_kernel *kernel, pid_t pid)
{
	if (!kernel->named) /* what it had started is not known */
		give_up(kernel, "nobody had told of a step before it was done");
	adopt(kernel, pid, SY_BPF_ROOT_DONE, -1);
}

bool sy_in_kernel_read(struct sy_in_kernel *kernel, bool last)
{
	if (!kernel->counts || !kernel->named)
		return false;
	if (sy_bpf_read(&kernel->bpf, last, &kernel->now) < 0)
		give_up(kernel, "its maps could not be read");
	else if (kernel->now.lost)
		give_up(kernel, "there was no room for all tasks");
	else if (kernel->now.late)
		give_up(kernel, "it was told of a step when a program of the step's had begun");
	else if (last && (kernel->now.unread || !kernel->now.settled))
		give_up(kernel, "tasks were still ending at the job's last reading");
	return kernel->counts;
}

struct sy_usage sy_in_kernel_usage(const struct sy_in_kernel *kernel)
{
	const struct sy_bpf_usage *used = &kernel->now.used;

	return (struct sy_usage){{(int64_t)used->cpu_ns, (int64_t)used->rchar, (int64_t)used->wchar,
				  (int64_t)used->read_bytes, (int64_t)used->write_bytes}};
}

void sy_in_kernel_tell(const struct sy_in_kernel *kernel, struct sy_status *status)
{
	bool gave_up = !kernel->counts && !status->bpf_why[0];

	status->missed_ends = kernel->counts ? (int64_t)kernel->now.missed : 0;
	if (gave_up)
		(void)snprintf(status->bpf_why, sizeof(status->bpf_why), "%.159s",
			       kernel->why.text);
}

bool sy_in_kernel_holds(struct sy_in_kernel *kernel, const struct sy_usage *shown)
{
	struct sy_usage counted = sy_in_kernel_usage(kernel);

	for (int i = 0; i < SY_USES; i++) {
		int64_t most = counted.use[i] + counted.use[i] / SHARE;

		most += i == SY_USE_CPU_NS ? SLACK_NS : SLACK_BYTES;
		if (shown->use[i] > most)
			give_up(kernel,
				"processes and their parents show more than it had counted");
	}
	return kernel->counts;
}

void sy_in_kernel_split(const struct sy_in_kernel *kernel, struct sy_status *status)
{
	int64_t cpu_us = status->sums.last.cell[SY_CPU];

	status->user_us = sy_bpf_user_of(&kernel->now.used, cpu_us);
	status->system_us = cpu_us - status->user_us;
}
