/* The loads of several processes and threads, and of other programs. Part of load.c. */
#ifndef LOAD_PROCESSES_H
#define LOAD_PROCESSES_H

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "load_work.h"

#define AT_ONCE 8 /* processes side by side */

static pid_t counted_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid > 0)
		counts->processes++;
	return pid;
}

static _Noreturn void child_work(double cpu_s, int64_t bytes, double life_s)
{
	double start = monotonic_s(), remaining;

	read_calls(bytes);
	write_calls(bytes);
	burn(cpu_s);
	remaining = start + life_s - monotonic_s();
	if (remaining > 0)
		sleep_s(remaining);
	end_process();
}

static void wait_one(void)
{
	int status;

	if (wait(&status) > 0 && status != 0)
		die("a process of the load failed");
}

/* `n` processes that are waited for, each with its share of the CPU seconds. */
static void processes(long n, double cpu_s, int64_t bytes, double life_s)
{
	long running = 0;

	for (long i = 0; i < n; i++) {
		if (running == AT_ONCE) {
			wait_one();
			running--;
		}
		if (counted_fork() == 0)
			child_work(cpu_s / (double)n, bytes, life_s);
		running++;
	}
	for (; running > 0; running--)
		wait_one();
}

static void wait_unwaited(long n)
{
	while (counts->unwaited_ended < n)
		sleep_s(0.005);
	sleep_s(0.01); /* their last instructions */
}

/* Double fork and setsid, as daemons do: nobody waits, and the parent is init from the start. */
static void orphans(long n, double cpu_s, int64_t bytes, double life_s)
{
	int64_t before = counts->unwaited_ended;

	for (long i = 0; i < n; i++) {
		if (counted_fork() == 0) {
			if (counted_fork() > 0)
				_exit(0);
			(void)setsid();
			unwaited = true;
			child_work(cpu_s / (double)n, bytes, life_s);
		}
		wait_one();
	}
	wait_unwaited(before + n);
}

/* The kernel reaps the children of a parent that ignores SIGCHLD, and adds nothing to it. */
static void ignored(long n, double cpu_s, int64_t bytes, double life_s)
{
	int64_t before = counts->unwaited_ended;

	(void)signal(SIGCHLD, SIG_IGN);
	for (long i = 0; i < n; i++) {
		if (counted_fork() == 0) {
			unwaited = true;
			child_work(cpu_s / (double)n, bytes, life_s);
		}
		sleep_s(life_s / AT_ONCE);
	}
	wait_unwaited(before + n);
	(void)signal(SIGCHLD, SIG_DFL);
}

static void *thread_work(void *argument)
{
	double seconds = *(double *)argument, end = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;

	while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < end)
		;
	return NULL;
}

static void threads(long n, double cpu_s)
{
	pthread_t all[64];
	double each = cpu_s / (double)n;

	if (n > (long)(sizeof(all) / sizeof(*all)))
		die("threads: at most %zu", sizeof(all) / sizeof(*all));
	for (long i = 0; i < n; i++)
		if (pthread_create(&all[i], NULL, thread_work, &each) != 0)
			die("pthread_create failed");
	for (long i = 0; i < n; i++)
		(void)pthread_join(all[i], NULL);
}

/* Another program, such as srun or mpirun: its CPU is in RUSAGE_CHILDREN, its bytes are what the
 * kernel's count of this process grew by meanwhile. The exit code is the program's. */
static int run_other(char **argv)
{
	int64_t reads = counts->read_calls_bytes, writes = counts->write_calls_bytes;
	struct io before = kernel_io(), after;
	int64_t own; /* the first reading: it is not in its own figure */
	int status = 0;
	pid_t pid = counted_fork();

	if (pid == 0) {
		(void)execvp(argv[0], argv);
		die("%s: %s", argv[0], strerror(errno));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	own = counts->read_calls_bytes - reads;
	after = kernel_io();
	counts->others_read_calls_bytes += after.rchar - before.rchar - own;
	counts->others_write_calls_bytes +=
	    after.wchar - before.wchar - (counts->write_calls_bytes - writes);
	counts->others_from_storage_bytes += after.read_bytes - before.read_bytes;
	counts->others_to_storage_bytes += after.write_bytes - before.write_bytes;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
