#include "loader.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rights.h"
#include "bpf/job.h"
#include "bpf/pins.h"

#define ABOVE	  "/sys/fs/bpf"
#define PERIOD_US 1000000

/* A bpf filesystem that disappears with this process, however the process ends. */
static int mount_private_bpffs(struct sy_error *err)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return sy_fail_errno(err, errno, "cannot be tried in a mount namespace of its own");
	if (mount("bpf", ABOVE, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") < 0)
		return sy_fail_errno(err, errno, "cannot mount a bpf filesystem on " ABOVE);
	return 0;
}

static int load(unsigned tasks, struct sy_error *err)
{
	cleanup_close int lock = sy_bpf_lock(SY_BPF_BASE, true, SY_BPF_PATIENCE_MS, err);

	return lock < 0 ? -1 : sy_loader_pin(SY_BPF_BASE, tasks, err);
}

/* All requests that a sampler makes while a job runs. */
static int run_requests(struct sy_bpf *bpf, struct sy_error *err)
{
	struct sy_bpf_answer answer;
	int result = sy_bpf_adopt(bpf, getppid(), SY_BPF_ROOT, -1, err);

	if (result < 0)
		return -1;
	result = sy_bpf_set_ticks(bpf, PERIOD_US);
	if (result == 0)
		result = sy_bpf_read(bpf, SY_BPF_BRIEF, &answer);
	return result < 0 ? sy_fail_errno(err, -result, "a job cannot be read") : 0;
}

static int run_as_sampler(struct sy_bpf_trial *trial)
{
	struct sy_error reason;
	struct sy_bpf bpf;

	if (sy_bpf_begin(&bpf, SY_BPF_BASE, 0, SY_BPF_KEEPER, SY_BPF_PATIENCE_MS, &trial->message) <
	    0)
		return -1;
	trial->right = sy_bpf_needs_right(&bpf);
	if (sy_rights_drop(trial->right, &trial->message) < 0)
		return -1;
	if (run_requests(&bpf, &reason) < 0)
		return sy_fail(&trial->message, "%s, with no more rights than a sampler keeps",
			       reason.text);
	return 0;
}

static void set_summary(struct sy_bpf_trial *trial)
{
	(void)sy_fail(&trial->message, "the kernel counts what jobs use%s",
		      trial->right ? "; samplers keep the right CAP_BPF, without which this kernel "
				     "refuses bpf(2) (kernel.unprivileged_bpf_disabled)"
				   : "");
}

static int run_trial(unsigned tasks, struct sy_bpf_trial *trial)
{
	if (mount_private_bpffs(&trial->message) < 0 || load(tasks, &trial->message) < 0 ||
	    run_as_sampler(trial) < 0)
		return -1;
	set_summary(trial);
	return 0;
}

/* The result of a child that has dropped its rights. */
static int read_trial(pid_t child, int from, struct sy_bpf_trial *trial)
{
	bool complete = read(from, trial, sizeof(*trial)) == (ssize_t)sizeof(*trial);
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!complete)
		(void)sy_fail(&trial->message,
			      "it was tried, and the trial ended before it reported");
	return complete && status == 0 ? 0 : -1;
}

int sy_bpf_try(unsigned tasks, struct sy_bpf_trial *trial)
{
	int ends[2], result;
	pid_t child;

	*trial = (struct sy_bpf_trial){0};
	if (pipe(ends) < 0)
		return sy_fail_errno(&trial->message, errno, "cannot make a pipe");
	child = fork();
	if (child == 0) {
		result = run_trial(tasks, trial) < 0;
		result |= write(ends[1], trial, sizeof(*trial)) < 0;
		_exit(result);
	}
	(void)close(ends[1]);
	result = child < 0 ? sy_fail_errno(&trial->message, errno, "cannot fork")
			   : read_trial(child, ends[0], trial);
	(void)close(ends[0]);
	return result;
}
