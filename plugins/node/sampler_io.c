#include "sampler_io.h"

#include "counters.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

static const int told[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP, SIGQUIT,
			   SIGUSR1, SIGUSR2, SIGALRM, SIGXCPU};

pid_t sy_fork_apart(void)
{
	return (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
}

static bool is_in_use(int fd, const struct sockaddr_un *address)
{
	return connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

int sy_control_open(const char *path, int given, struct sy_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t before;
	int fd, result;

	if (given >= 0)
		return fcntl(given, F_SETFD, FD_CLOEXEC) < 0
			   ? sy_fail_errno(err, errno, "--control-fd %d", given)
			   : given;
	if (!path)
		return -1;
	if (strlen(path) >= sizeof(address.sun_path))
		return sy_fail(err, "the socket's path is longer than %zu bytes: %s",
			       sizeof(address.sun_path) - 1, path);
	(void)strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make a socket");
	if (is_in_use(fd, &address)) {
		(void)close(fd);
		return sy_fail(err, "another sampler listens to %s", path);
	}
	(void)unlink(path);
	before = umask(0177);
	result = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	(void)umask(before);
	if (result < 0) {
		(void)sy_fail_errno(err, errno, "cannot make the socket %s", path);
		(void)close(fd);
		return -1;
	}
	return fd;
}

void sy_keep_out_of_the_way(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd <= 2 && null >= 0; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		(void)close(null);
}

static void (*before_pipe)(int) = SIG_DFL;
static void (*before_size)(int) = SIG_DFL;

int sy_take_signals(void)
{
	sigset_t all;

	before_pipe = signal(SIGPIPE, SIG_IGN);
	before_size = signal(SIGXFSZ, SIG_IGN);
	(void)sigemptyset(&all);
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		(void)sigaddset(&all, told[i]);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	return signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void become_command(char **argv)
{
	sigset_t none;
	int error;

	(void)signal(SIGPIPE, before_pipe);
	(void)signal(SIGXFSZ, before_size);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execvp(argv[0], argv);
	error = errno;
	(void)fprintf(stderr, "steelyard-node sample: cannot run %s: %s\n", argv[0],
		      strerror(error));
	_exit(error == ENOENT ? 127 : 126);
}

pid_t sy_start_command(char **argv)
{
	pid_t pid = fork();
	int null;

	if (pid == 0)
		become_command(argv);
	if (pid < 0)
		(void)fprintf(stderr, "steelyard-node sample: cannot start %s: %s\n", argv[0],
			      strerror(errno));
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd <= 1 && null >= 0; fd++)
		(void)dup2(null, fd);
	if (null > 2)
		(void)close(null);
	return pid;
}

static int read_io_file(const char *path, struct sy_io *io, ssize_t *length)
{
	char text[512];
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*length = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	if (fd >= 0)
		(void)close(fd);
	if (*length < 0)
		return -1;
	text[*length] = '\0';
	return sy_parse_io(text, io);
}

/* The process' counters less those of its only thread are those of the children waited for. The
 * thread is read second, so it has read as many bytes more as the first file is long. */
int sy_reaped_io(int64_t io[4])
{
	struct sy_io all, own;
	ssize_t first, second;

	if (read_io_file("/proc/self/io", &all, &first) < 0 ||
	    read_io_file("/proc/thread-self/io", &own, &second) < 0)
		return -1;
	io[0] = all.rchar - (own.rchar - first);
	io[1] = all.wchar - own.wchar;
	io[2] = all.read - own.read;
	io[3] = all.write - own.write;
	for (int i = 0; i < 4; i++)
		if (io[i] < 0)
			return -1;
	return 0;
}

void sy_print_path(const struct sy_plan *plan, const char *name)
{
	char text[4096];
	int length =
	    snprintf(text, sizeof(text), "%s/%s/%s.json\n", plan->record_dir, plan->job_id, name);

	if (length < (int)sizeof(text))
		(void)sy_write_all(plan->print_fd, text, (size_t)length);
}

int sy_exit_code(const struct sy_exact *exact, bool command)
{
	if (!command)
		return 0;
	if (exact->signal > 0)
		return 128 + exact->signal;
	return exact->exit_code < 0 ? 126 : exact->exit_code;
}
