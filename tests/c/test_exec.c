/* Programs and functions in processes of their own: what they inherit (nothing but their own
 * descriptors, on kernels before 5.9, RHEL 8, and under filters of system calls, too), how long
 * they may take, and what they wrote. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/gen_stats.h>
#include <linux/inet_diag.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#include "base/descriptors.h"
#include "base/json_document.h"
#include "base/exec.h"
#include "base/file.h"
#include "base/kernel_uapi.h"
#include "job/spawn.h"

#define MANY 300 /* more than one read of the folder lists */

#ifdef RESOLVE_IN_ROOT
_Static_assert(SY_RESOLVE_IN_ROOT == RESOLVE_IN_ROOT, "linux/openat2.h");
#endif
_Static_assert(SY_INET_DIAG_CGROUP_ID == INET_DIAG_CGROUP_ID, "linux/inet_diag.h");
_Static_assert(SY_TCA_STATS_PKT64 == TCA_STATS_PKT64, "linux/gen_stats.h");

/* From this call on the kernel has no close_range(2). */
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
	struct sy_spawn_output answer = {.out = out, .out_size = size};
	struct sy_error err;

	if (sy_spawn_and_read(&arguments, 10000, &answer, &err) < 0)
		(void)snprintf(out, size, "%s", err.text);
}

/* In a child: what is refused there stays so. */
static void test_inherits(int (*before)(void), const char *what)
{
	char out[4096] = "";
	int notes[2];
	ssize_t got;
	pid_t child;

	if (!ok(pipe(notes) == 0, "a pipe"))
		return;
	child = fork();
	if (child == 0) {
		if (before && before() < 0)
			(void)snprintf(out, sizeof(out), "cannot be had: %s", strerror(errno));
		else
			inherited(out, sizeof(out));
		_exit(write(notes[1], out, strlen(out) + 1) < 0);
	}
	(void)close(notes[1]);
	got = read(notes[0], out, sizeof(out) - 1);
	out[got > 0 ? got : 0] = '\0';
	(void)close(notes[0]);
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

#define LARGE (1 << 20) /* more than a pipe has room for */
#define SOON  200	/* ms; where it matters, the process waits for ever */
#define AMPLE 60000

static int write_much(const void *context, int out)
{
	const char *letter = context;
	char *text = malloc(LARGE);

	if (!text)
		return -1;
	memset(text, *letter, LARGE);
	return sy_write_all(out, text, LARGE);
}

static int fail(const void *context, int out)
{
	(void)context;
	return sy_write_all(out, "half", 4) - 1;
}

static int die(const void *context, int out)
{
	(void)out;
	return raise(*(const int *)context);
}

static int hang(const void *context, int out)
{
	(void)context;
	(void)out;
	while (pause() < 0)
		;
	return 0;
}

static int list_descriptors(const void *context, int out)
{
	char name[8];

	(void)context;
	for (int fd = 0; fd < MANY; fd++) {
		int length = snprintf(name, sizeof(name), "%d ", fd);

		if (fcntl(fd, F_GETFD) >= 0 && sy_write_all(out, name, (size_t)length) < 0)
			return -1;
	}
	return 0;
}

static bool no_child_is_left(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

static void test_function(void)
{
	struct sy_error err = {""};
	int signal = SIGKILL;
	cleanup_free char *much = sy_run_function(AMPLE, write_much, "x", &err);
	cleanup_free char *inherits = sy_run_function(AMPLE, list_descriptors, NULL, &err);

	is_int(much ? (int64_t)strspn(much, "x") : -1, LARGE, "a function's text, of any length");
	is_string(inherits, "0 1 2 3 ", "and it inherits no descriptor");
	is_string(sy_run_function(AMPLE, fail, NULL, &err), NULL, "one that fails has no text");
	is_string(err.text, "the process has no result", "which is reported");
	is_string(sy_run_function(AMPLE, die, &signal, &err), NULL, "one that dies has none");
	is_string(err.text, "the process died of signal 9", "which is reported");
	is_string(sy_run_function(SOON, hang, NULL, &err), NULL, "one that hangs has none");
	is_string(err.text, "not done within 0.2 s", "which is reported");
	ok(no_child_is_left(), "and all of them are reaped");
}

static json_t *make_list(const void *context)
{
	return json_pack("[s, i]", context, 3);
}

static json_t *make_nothing(const void *context)
{
	(void)context;
	return NULL;
}

static void test_document(void)
{
	json_t *list = sy_json_within(AMPLE, make_list, "two words");

	is_string(json_string_value(json_array_get(list, 0)), "two words", "a document's text");
	is_int(json_integer_value(json_array_get(list, 1)), 3, "a document's number");
	json_decref(list);
	ok(!sy_json_within(AMPLE, make_nothing, NULL), "no document, no result");
}

/* It ends once the test lets it: nobody has killed it. */
static void test_left(void)
{
	char folder[] = "/tmp/steelyard-test-XXXXXX", go[64], script[256];
	const char *const waits[] = {"sh", "-c", script, NULL};
	cleanup_output struct sy_output output = {0};
	struct sy_error err = {""};
	int status = -1;

	if (!ok(mkdtemp(folder), "a folder"))
		return;
	(void)snprintf(go, sizeof(go), "%s/go", folder);
	(void)snprintf(script, sizeof(script), "until [ -e %s ]; do sleep 0.05; done; exit 3", go);
	is_int(sy_run_or_leave(SOON, waits, &output, &err), -1, "a program that is left");
	ok(strstr(err.text, "sh did not end within 0.2 s and still runs") != NULL, "%s", err.text);
	(void)close(open(go, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	(void)wait(&status);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 3, "ends by itself");
	(void)unlink(go);
	(void)rmdir(folder);
}

static void test_program(void)
{
	const char *const sleep[] = {"sleep", "1000", NULL};
	const char *const cat[] = {"cat", NULL};
	const char *const absent[] = {"/no/such/program", NULL};
	cleanup_output struct sy_output output = {0}, none = {0}, slow = {0};
	struct sy_error err = {""};

	is_int(sy_run(cat, "line\n", &output, &err), 0, "a program");
	is_string(output.out, "line\n", "has its input, and its output is read");
	is_int(output.status, 0, "and its exit code");
	is_int(sy_run(absent, NULL, &none, &err), -1, "a program that is not there");
	ok(none.missing, "is known to be missing");
	is_int(sy_run_within(SOON, sleep, NULL, &slow, &err), -1, "a program that takes too long");
	ok(strstr(err.text, "sleep did not end within 0.2 s and was killed") != NULL, "%s",
	   err.text);
	ok(no_child_is_left(), "and is reaped");
	test_left();
}

int main(void)
{
	test_program();
	test_document();
	for (int i = 0; i < MANY; i++)
		(void)dup(STDIN_FILENO);
	ok(fcntl(MANY, F_GETFD) == 0, "descriptors that must not be inherited");
	test_inherits(NULL, "with close_range(2)");
	test_inherits(refuse_close_range, "by walking through /proc/self/fd");
	test_function();
	test_full_table();
	return done_testing();
}
