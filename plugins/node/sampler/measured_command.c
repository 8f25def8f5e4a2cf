/* Measures a command: starts it once the first sample is taken, ends with it. */
#include "sampler/sampler.h"

#include "bpf/job.h"
#include "counters/child_processes.h"
#include "sampler/parent.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct sy_parent p;
static struct sy_exact exact = {.exit_code = -1, .signal = -1};
static pid_t command;

/* The command, and what it left behind, whose parent we become. The child that samples is no
 * ordinary child and not among them. */
static void reap(void)
{
	pid_t pid;

	while ((pid = sy_reap(command, WNOHANG, &exact)) > 0)
		p.end |= pid == command;
	exact.has_unreaped_children = exact.known && pid == 0;
}

static void on_signal(struct sy_parent *parent, const struct signalfd_siginfo *info)
{
	(void)parent;
	if (info->ssi_signo == SIGCHLD)
		reap();
	else if (info->ssi_code != SI_KERNEL) /* a terminal has sent it to the command as well */
		(void)kill(command, (int)info->ssi_signo);
}

/* Our children's counters are in ours since they were waited for. */
static void send_exact_counters(void)
{
	char text[256];

	sy_read_command_io(&exact);
	if (!sy_parent_has_child(&p) || !exact.known || !exact.io_known)
		return;
	(void)snprintf(text, sizeof(text), "done %d %lld %lld %lld %lld %lld", (int)getpid(),
		       (long long)exact.cpu_us, (long long)exact.io[0], (long long)exact.io[1],
		       (long long)exact.io[2], (long long)exact.io[3]);
	sy_parent_send(&p, text);
}

static void start_command(char **argv)
{
	command = sy_start_command(argv, &exact);
	p.end = command < 0;
	reap(); /* its end may have come before we wait for signals */
}

int sy_measure_command(struct sy_sampling *sampling)
{
	sy_leave_earlier_children();
	p.sampling = sampling;
	p.signal_fd = sy_open_signals();
	if (p.signal_fd < 0) /* its end could not be noticed otherwise */
		return sy_run_unmeasured(sampling->command);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (sy_parent_set_up(&p)) {
		sy_parent_probe(&p); /* before anything is measured */
		sy_parent_write_first_record(&p);
		sy_parent_start_child(&p);
		sy_kernel_count_own_children(&p.kernel);
		sy_bpf_reap(&p.kernel.bpf); /* takes a grace period: none of the command's time */
	} else {
		sy_parent_close_record(&p);
	}
	start_command(sampling->command);
	sy_parent_wait(&p, on_signal);
	send_exact_counters();
	sy_parent_finish(&p, &exact);
	return sy_exit_code(&exact);
}
