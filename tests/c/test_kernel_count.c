/* A job that is counted before its sampler runs: loading, tried once, and joining. As root, in a
 * mount namespace of its own; where the kernel does not count, only the first. */
#include "tap.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/pins.h"
#include "job/kernel_count.h"

#define BUILT "build/bin/steelyard-bpf"

static char folder[] = "/tmp/sycounted-XXXXXX", fake[64], refusal[64], tried[64];
static struct sy_node_program program = {.path = "/bin/true", .run_dir = folder};
static char real[4096];
static struct sockaddr_un control = {.sun_family = AF_UNIX};

static bool own_place(void)
{
	return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("bpf", "/sys/fs/bpf", "bpf", 0, "mode=0700") == 0;
}

static void write_fake(void)
{
	FILE *file = fopen(fake, "w");

	(void)fprintf(file, "#!/bin/sh\necho x >>%s\nexit 1\n", tried);
	(void)fclose(file);
	(void)chmod(fake, 0755);
}

static int64_t tries(void)
{
	struct stat info;

	return stat(tried, &info) == 0 ? info.st_size / 2 : 0;
}

static void test_refused(void)
{
	write_fake();
	sy_counted_load(&program, NULL, SY_LOAD_MS);
	is_int(tries(), 0, "not wanted: not tried");
	sy_counted_load(&program, fake, SY_LOAD_MS);
	is_int(tries(), 1, "a loader that fails was run");
	ok(access(refusal, F_OK) == 0, "and it is remembered");
	sy_counted_load(&program, fake, SY_LOAD_MS);
	is_int(tries(), 1, "no other job waits for it");
	sy_counted_retry(&program);
	sy_counted_load(&program, fake, SY_LOAD_MS);
	is_int(tries(), 2, "slurmd's start has it tried again");
	(void)utimensat(AT_FDCWD, fake, (struct timespec[2]){{0, UTIME_OMIT}, {1L << 32, 0}}, 0);
	sy_counted_load(&program, fake, SY_LOAD_MS);
	is_int(tries(), 3, "and so has another loader");
}

static void bind_control(void)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)snprintf(control.sun_path, sizeof(control.sun_path), "%s/sock", folder);
	(void)unlink(control.sun_path);
	ok(bind(fd, (struct sockaddr *)&control, sizeof(control)) == 0, "a control socket");
}

/* Another daemon of the same job: whether it has come to the same count. */
static bool joins(const struct sy_counted *first)
{
	struct sy_counted own;
	int how = 1;

	if (fork() == 0) {
		sy_counted_join(&own, &control, SY_BPF_STEPD);
		_exit(own.number != first->number || own.since_ns != first->since_ns);
	}
	(void)wait(&how);
	return how == 0;
}

static void test_joined(void)
{
	struct sy_counted counted, again;

	bind_control();
	sy_counted_join(&counted, &control, SY_BPF_KEEPER);
	is_int(counted.since_ns, 0, "nothing is loaded: nothing counts");
	sy_counted_retry(&program);
	sy_counted_load(&program, real, SY_LOAD_MS);
	ok(access(refusal, F_OK) != 0, "loaded, and no refusal is left");
	sy_counted_join(&counted, &control, SY_BPF_KEEPER);
	ok(counted.since_ns > 0, "joined");
	ok(joins(&counted), "a step's daemon comes to the same count");
	is_int(sy_bpf_count_jobs(SY_BPF_BASE), 1, "which is one");
	bind_control();
	sy_counted_join(&again, &control, SY_BPF_KEEPER);
	is_int(again.since_ns, 0, "whoever is of one job is of no other");
	ok(again.number != counted.number, "of another start");
	sy_counted_forget(&again, &program, real);
	sy_counted_forget(&counted, &program, real);
	is_int(sy_bpf_count_jobs(SY_BPF_BASE) > 0, 0, "forgotten");
	is_int(sy_bpf_count_tasks(SY_BPF_BASE) > 0, 0, "with all of its tasks");
}

int main(void)
{
	if (!own_place()) {
		(void)puts("1..0 # SKIP root and a mount namespace are needed");
		return 0;
	}
	(void)mkdtemp(folder);
	(void)snprintf(fake, sizeof(fake), "%s/fake", folder);
	(void)snprintf(tried, sizeof(tried), "%s/tried", folder);
	(void)snprintf(refusal, sizeof(refusal), "%s/bpf.refused", folder);
	test_refused();
	if (realpath(BUILT, real) && system(BUILT " status >/dev/null") == 0)
		test_joined();
	(void)unlink(fake);
	(void)unlink(tried);
	(void)unlink(refusal);
	(void)unlink(control.sun_path);
	(void)rmdir(folder);
	return done_testing();
}
