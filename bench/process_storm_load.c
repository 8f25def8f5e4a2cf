/* The storm that bench/process_storm.py measures: RATE processes a second for SECONDS, each of
 * which lives 1 to 5 ms, burns BURN_US of CPU, writes 10,000 bytes and reads 5,000; waited for,
 * or not (`ignore`: SIGCHLD is). Joins the cgroups whose PROCS files are named. Says that it is
 * ready, begins and ends at a line on stdin; between them prints what it knows itself:
 * children, their CPU by their own clocks, its own. usage: process_storm_load RATE SECONDS
 * wait|ignore BURN_US [PROCS]... */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 1000000

static double now_s(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sleep_until(double then_s)
{
	double remaining_s = then_s - now_s(CLOCK_MONOTONIC);

	if (remaining_s > 0)
		(void)usleep((unsigned)(remaining_s * 1e6));
}

static bool join(const char *procs)
{
	int fd = open(procs, O_WRONLY | O_CLOEXEC);
	bool joined = fd >= 0 && write(fd, "0", 1) == 1;

	if (fd >= 0)
		(void)close(fd);
	return joined;
}

__attribute__((noreturn)) static void be_a_child(long number, double burn_s, float *cpu_s)
{
	static char bytes[10000];
	double end_s =
	    now_s(CLOCK_MONOTONIC) + 0.001 + 0.004 * (double)(number * 7919 % 1000) / 1000;
	int null = open("/dev/null", O_WRONLY), zero = open("/dev/zero", O_RDONLY);

	while (now_s(CLOCK_PROCESS_CPUTIME_ID) < burn_s)
		;
	if (write(null, bytes, 10000) != 10000 || read(zero, bytes, 5000) != 5000)
		_exit(1);
	sleep_until(end_s);
	*cpu_s = (float)now_s(CLOCK_PROCESS_CPUTIME_ID);
	_exit(0);
}

static long storm(double rate, double seconds, bool ignore, double burn_s, float *cpu_s)
{
	double begin_s = now_s(CLOCK_MONOTONIC), next_s = begin_s;
	long count = 0;

	while (next_s < begin_s + seconds && count < MOST) {
		pid_t pid;

		sleep_until(next_s);
		pid = fork();
		if (pid == 0)
			be_a_child(count, burn_s, &cpu_s[count]);
		count += pid > 0;
		next_s += 1 / rate;
		while (!ignore && waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (wait(NULL) > 0) /* until the last is gone, also where SIGCHLD is ignored */
		;
	return count;
}

int main(int argc, char **argv)
{
	bool ignore = argc > 4 && !strcmp(argv[3], "ignore");
	double sum_s = 0;
	float *cpu_s;
	long count;

	if (argc < 5)
		return 2;
	for (int i = 5; i < argc; i++)
		if (!join(argv[i]))
			return 3;
	cpu_s = mmap(NULL, MOST * sizeof(*cpu_s), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (cpu_s == MAP_FAILED)
		return 3;
	if (ignore)
		(void)signal(SIGCHLD, SIG_IGN);
	(void)puts("ready");
	(void)fflush(stdout);
	(void)getchar();
	count = storm(atof(argv[1]), atof(argv[2]), ignore, atof(argv[4]) * 1e-6, cpu_s);
	for (long i = 0; i < count; i++)
		sum_s += (double)cpu_s[i];
	(void)printf("%ld %.4f %.4f\n", count, sum_s, now_s(CLOCK_PROCESS_CPUTIME_ID));
	(void)fflush(stdout);
	(void)getchar();
	return 0;
}
