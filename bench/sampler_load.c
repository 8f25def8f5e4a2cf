/* The job that bench/sampler.py measures: N processes, each of which wakes every PERIOD_MS and
 * writes 100 bytes, for SECONDS. They join the cgroups whose PROCS files are named. usage:
 * sampler_load N PERIOD_MS SECONDS [PROCS]... */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static bool join(const char *procs)
{
	int fd = open(procs, O_WRONLY | O_CLOEXEC);
	bool joined = fd >= 0 && write(fd, "0", 1) == 1;

	if (fd >= 0)
		(void)close(fd);
	return joined;
}

static double now_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void work(long period_ms, double end_s)
{
	static const char bytes[100];
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)usleep((unsigned)((long)getpid() * 7919 % (period_ms * 1000)));
	while (now_s() < end_s && write(null, bytes, sizeof(bytes)) > 0)
		(void)usleep((unsigned)(period_ms * 1000));
}

int main(int argc, char **argv)
{
	double end_s = argc > 3 ? now_s() + atof(argv[3]) : 0;
	long count = argc > 3 ? atol(argv[1]) : 0, period_ms = count > 0 ? atol(argv[2]) : 0;

	if (period_ms < 1)
		return 2;
	for (int i = 4; i < argc; i++) {
		if (join(argv[i]))
			continue;
		(void)fprintf(stderr, "sampler_load: cannot join %s\n", argv[i]);
		return 3;
	}
	for (long i = 1; i < count; i++) {
		if (fork() != 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		break;
	}
	work(period_ms, end_s);
	return 0;
}
