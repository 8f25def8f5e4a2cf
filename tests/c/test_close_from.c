/* What a program that we start inherits: nothing but its own descriptors, on kernels before 5.9
 * (RHEL 8) and under filters of system calls, too. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/gen_stats.h>
#include <linux/inet_diag.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#include "base/close_from.h"
#include "base/kernel.h"
#include "job/spawn.h"

#define MANY 300 /* more than one read of the folder lists */

#ifdef RESOLVE_IN_ROOT
_Static_assert(SY_RESOLVE_IN_ROOT == RESOLVE_IN_ROOT, "linux/openat2.h");
#endif
_Static_assert(SY_INET_DIAG_CGROUP_ID == INET_DIAG_CGROUP_ID, "linux/inet_diag.h");
_Static_assert(SY_TCA_STATS_PKT64 == TCA_STATS_PKT64, "linux/gen_stats.h");

/* From now on the kernel says that it has no close_range(2). */
static int refuse_close_range(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
		       syscall(SYS_close_range, ~0U, ~0U, 0) < 0 && errno == ENOSYS
		   ? 0
		   : -1;
}

/* The descriptors of a program that is started as all of ours are, one a line; `ls` has one for the
 * folder. */
static void inherited(char *out, size_t size)
{
	struct sy_arguments arguments = {.argv = {(char *)"/bin/ls", (char *)"/proc/self/fd"},
					 .count = 2};
	struct sy_answer answer = {.out = out, .out_size = size};
	struct sy_error err;

	if (sy_ask(&arguments, 10000, &answer, &err) < 0)
		(void)snprintf(out, size, "%s", err.text);
}

/* In a child: what is refused there stays so. */
static void test_inherits(int (*before)(void), const char *what)
{
	char out[4096] = "";
	int told[2];
	ssize_t got;
	pid_t child;

	if (!ok(pipe(told) == 0, "a pipe"))
		return;
	child = fork();
	if (child == 0) {
		if (before && before() < 0)
			(void)snprintf(out, sizeof(out), "cannot be had: %s", strerror(errno));
		else
			inherited(out, sizeof(out));
		_exit(write(told[1], out, strlen(out) + 1) < 0);
	}
	(void)close(told[1]);
	got = read(told[0], out, sizeof(out) - 1);
	out[got > 0 ? got : 0] = '\0';
	(void)close(told[0]);
	(void)waitpid(child, NULL, 0);
	is_string(out, "0\n1\n2\n3\n", what);
}

/* No descriptor is left to read the folder with. */
static void test_full_table(void)
{
	pid_t child = fork();
	int status = -1, high = -1;

	if (child == 0) {
		struct rlimit limit = {MANY + 50, MANY + 50};

		(void)setrlimit(RLIMIT_NOFILE, &limit);
		while (dup(STDIN_FILENO) >= 0)
			;
		if (errno != EMFILE || refuse_close_range() < 0)
			_exit(100);
		sy_close_from(3);
		for (int fd = 0; fd < MANY + 50; fd++)
			high = fcntl(fd, F_GETFD) < 0 ? high : fd;
		_exit(high);
	}
	(void)waitpid(child, &status, 0);
	is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 2, "with a full table, too");
}

int main(void)
{
	for (int i = 0; i < MANY; i++)
		(void)dup(STDIN_FILENO);
	ok(fcntl(MANY, F_GETFD) == 0, "descriptors that must not be inherited");
	test_inherits(NULL, "with close_range(2)");
	test_inherits(refuse_close_range, "by walking through /proc/self/fd");
	test_full_table();
	return done_testing();
}
