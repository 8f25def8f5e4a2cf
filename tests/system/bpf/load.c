/* load HOW CHILDREN BURN_US [moved] [CGROUP_PROCS]...: so many children (threads), each burns so
 * much CPU, reads 5000 bytes and writes 10000. Prints what all of them and itself have read and
 * written, as counted by what read(2) and write(2) returned, itself as of /proc/self/io before
 * main. First it goes into those groups, one after the other.
 *
 * moved: it works, with a child, says "ready", waits for a byte, and prints what was after that.
 *
 * HOW: wait (for each), ignore (SIGCHLD), orphan (its parent ends before it works), thread, exec
 * (a thread that is not the first becomes another program), crowd (all threads are there before
 * anything else, and wait), born (in the group of version 2 that is named: it does not go there).
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FORMAT "{\"rchar_bytes\": %20lld, \"wchar_bytes\": %20lld}\n"

static long long rchar, wchar;
static long burn_us;
static int null, zero;

static double cpu_s(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void work(clockid_t clock)
{
	static char buffer[10000];
	double until = cpu_s(clock) + (double)burn_us * 1e-6;

	while (cpu_s(clock) < until)
		;
	if (write(null, buffer, sizeof(buffer)) != (ssize_t)sizeof(buffer) ||
	    read(zero, buffer, 5000) != 5000)
		abort();
}

static void *in_thread(void *become)
{
	char burn[20];

	if (!become) {
		work(CLOCK_THREAD_CPUTIME_ID);
		return NULL;
	}
	(void)snprintf(burn, sizeof(burn), "%ld", burn_us);
	(void)execl("/proc/self/exe", "load", "leaf", "0", burn, (char *)NULL);
	abort();
}

static void thread(void *become)
{
	pthread_t id;

	if (pthread_create(&id, NULL, in_thread, become) != 0 || pthread_join(id, NULL) != 0)
		abort();
}

static int born_in = -1;

static pid_t start(void)
{
	struct clone_args how = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};

	if (born_in < 0)
		return fork();
	how.cgroup = (unsigned)born_in;
	return (pid_t)syscall(SYS_clone3, &how, sizeof(how));
}

static void child(const char *how)
{
	pid_t pid;

	if (!strcmp(how, "thread")) {
		thread(NULL);
		return;
	}
	pid = start();
	if (pid < 0)
		abort();
	if (pid > 0) {
		if (strcmp(how, "ignore") != 0)
			(void)waitpid(pid, NULL, 0);
		return;
	}
	if (!strcmp(how, "exec"))
		thread(&pid);
	if (!strcmp(how, "orphan") && fork() != 0)
		_exit(0);
	work(CLOCK_PROCESS_CPUTIME_ID);
	_exit(0);
}

static void begin(void)
{
	char text[512];
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
	ssize_t got = read(fd, text, sizeof(text) - 1);

	if (got <= 0)
		abort();
	text[got] = '\0';
	if (sscanf(text, "rchar: %lld wchar: %lld", &rchar, &wchar) != 2)
		abort();
	rchar += got;
	(void)close(fd);
}

static pthread_barrier_t crowd;

static void *in_crowd(void *unused)
{
	(void)pthread_barrier_wait(&crowd);
	return in_thread(unused);
}

static void gather(pthread_t *id, long count)
{
	pthread_attr_t small;

	(void)pthread_attr_init(&small);
	(void)pthread_attr_setstacksize(&small, 65536);
	(void)pthread_barrier_init(&crowd, NULL, (unsigned)count + 1);
	for (long i = 0; i < count; i++)
		if (pthread_create(&id[i], &small, in_crowd, NULL) != 0)
			abort();
}

static void let_go(const pthread_t *id, long count)
{
	(void)pthread_barrier_wait(&crowd);
	for (long i = 0; i < count; i++)
		(void)pthread_join(id[i], NULL);
}

/* What is before is not told. */
static void be_moved(void)
{
	char byte;

	work(CLOCK_PROCESS_CPUTIME_ID);
	child("wait");
	if (dprintf(1, "ready\n") < 0)
		abort();
	rchar = read(0, &byte, 1);
	wchar = 0;
}

static void join(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (write(fd, "0", 1) != 1)
		abort();
	wchar += 1;
	(void)close(fd);
}

int main(int count, char **word)
{
	long children = count > 2 ? atol(word[2]) : 0;
	static pthread_t threads[10000];
	char end;
	int alive[2];

	if (count < 4 || pipe(alive) < 0)
		return 2;
	begin();
	burn_us = atol(word[3]);
	null = open("/dev/null", O_WRONLY);
	zero = open("/dev/zero", O_RDONLY);
	if (!strcmp(word[1], "leaf")) {
		work(CLOCK_PROCESS_CPUTIME_ID);
		return 0;
	}
	if (!strcmp(word[1], "crowd"))
		gather(threads, children);
	for (int i = 4; i < count; i++) {
		if (!strcmp(word[i], "moved"))
			be_moved();
		else if (!strcmp(word[1], "born"))
			born_in = open(word[i], O_RDONLY | O_CLOEXEC);
		else
			join(word[i]);
	}
	if (!strcmp(word[1], "ignore"))
		(void)signal(SIGCHLD, SIG_IGN);
	if (!strcmp(word[1], "crowd"))
		let_go(threads, children);
	else
		for (long i = 0; i < children; i++)
			child(word[1]);
	(void)close(alive[1]);
	while (read(alive[0], &end, 1) != 0) /* until the last one has closed it */
		;
	rchar += 5000 * children;
	wchar += 10000 * children;
	wchar += snprintf(NULL, 0, FORMAT, rchar, wchar); /* of one width whatever the numbers */
	count = dprintf(1, FORMAT, rchar, wchar);
	return count < 0;
}
