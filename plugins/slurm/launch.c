#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "escape.h"
#include "file.h"

#define CONTROL_FD     3
#define ARGUMENTS_MAX  64
#define JOB_FIELDS_MAX 16

struct arguments {
	char *argv[ARGUMENTS_MAX];
	size_t count;
};

static void add(struct arguments *to, const char *option, const char *value)
{
	if (to->count + 2 >= ARGUMENTS_MAX)
		return;
	to->argv[to->count++] = (char *)option;
	to->argv[to->count++] = (char *)value;
}

/* A socket only root can send to. The folder is made when it is not there: /run is emptied at
 * every start of the machine. */
static int bind_control(const struct sockaddr_un *address, const char *run_dir,
			struct sy_error *err)
{
	int fd;
	mode_t before;

	if (mkdir(run_dir, 0700) != 0 && errno != EEXIST)
		return sy_fail_errno(err, errno, "cannot make the folder %s", run_dir);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return sy_fail_errno(err, errno, "cannot make a socket");
	(void)unlink(address->sun_path); /* of an earlier start of the same job */
	before = umask(0177);
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0) {
		(void)sy_fail_errno(err, errno, "cannot make the socket %s", address->sun_path);
		(void)close(fd);
		fd = -1;
	}
	(void)umask(before);
	return fd;
}

/* In the grandchild, between fork and exec of a process with threads: system calls only. */
__attribute__((noreturn)) static void become_sampler(int control, char **argv, char **environment,
						     const struct sy_escape *escape)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	sy_escape_run(escape);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0) {
		for (int fd = 0; fd < CONTROL_FD; fd++)
			(void)dup2(null, fd);
	}
	if (control == CONTROL_FD)
		(void)fcntl(control, F_SETFD, 0);
	else
		(void)dup2(control, CONTROL_FD);
	(void)close_range(CONTROL_FD + 1, ~0U, 0);
	(void)chdir("/");
	(void)execve(argv[0], argv, environment);
	_exit(127);
}

/* Two forks and a session of its own: nobody's child, in no process group of the job. */
static int start(int control, char **argv, char **environment, const struct sy_escape *escape,
		 struct sy_error *err)
{
	pid_t child = fork();

	if (child < 0)
		return sy_fail_errno(err, errno, "cannot start a process");
	if (child == 0) {
		(void)setsid();
		if (fork() == 0)
			become_sampler(control, argv, environment, escape);
		_exit(0);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static void fill_arguments(struct arguments *to, const struct sy_launch *launch, char (*text)[32])
{
	const struct sy_config *config = launch->config;
	const struct sy_step *step = launch->step;

	(void)snprintf(text[0], sizeof(text[0]), "%u", step->job_id);
	(void)snprintf(text[1], sizeof(text[1]), "%g", config->rate_hz);
	(void)snprintf(text[2], sizeof(text[2]), "%d", (int)getpid());
	(void)snprintf(text[3], sizeof(text[3]), "%u:%u", step->uid, step->gid);
	(void)snprintf(text[4], sizeof(text[4]), "%d", CONTROL_FD);
	to->argv[to->count++] = (char *)config->node_program;
	to->argv[to->count++] = (char *)"sample";
	add(to, "--record-dir", config->record_dir);
	add(to, "--job-id", text[0]);
	add(to, "--node", step->node);
	add(to, "--rate", text[1]);
	add(to, "--watch", text[2]);
	add(to, "--owner", text[3]);
	add(to, "--control", launch->control->sun_path);
	add(to, "--control-fd", text[4]);
	for (size_t i = 0; launch->job_fields[i] && i < JOB_FIELDS_MAX; i++)
		add(to, "--job", launch->job_fields[i]);
	to->argv[to->count] = NULL;
}

int sy_launch_sampler(const struct sy_launch *launch, struct sy_error *err)
{
	struct arguments arguments = {.count = 0};
	struct sy_escape escape;
	char text[5][32], slurm_conf[SY_PATH_SIZE + 16];
	/* SLURM_CONF tells whose sampler it is (`steelyard cluster down` looks for it). */
	char *environment[] = {(char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"LC_ALL=C",
			       slurm_conf, NULL};
	const char *conf = getenv("SLURM_CONF");
	cleanup_close int control = -1;

	if (access(launch->config->node_program, X_OK) != 0)
		return sy_fail_errno(err, errno, "cannot run node_program=%s",
				     launch->config->node_program);
	control = bind_control(launch->control, launch->config->run_dir, err);
	if (control < 0)
		return -1;
	(void)snprintf(slurm_conf, sizeof(slurm_conf), "SLURM_CONF=%s", conf ? conf : "");
	fill_arguments(&arguments, launch, text);
	sy_escape_prepare(&escape);
	if (start(control, arguments.argv, environment, &escape, err) < 0) {
		(void)unlink(launch->control->sun_path);
		return -1;
	}
	return 0;
}

static bool is_stale(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	cleanup_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
		return false;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0 &&
	       errno == ECONNREFUSED;
}

void sy_remove_stale_sockets(const char *run_dir, const char *node)
{
	size_t length = strlen(node);
	struct dirent *entry;
	DIR *dir = opendir(run_dir);

	while (dir && (entry = readdir(dir))) {
		const char *ending = strrchr(entry->d_name, '.');
		char path[SY_PATH_SIZE + 260];

		if (strncmp(entry->d_name, node, length) != 0 || entry->d_name[length] != '.' ||
		    !ending || strcmp(ending, ".sock") != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", run_dir, entry->d_name);
		if (is_stale(path))
			(void)unlink(path);
	}
	if (dir)
		(void)closedir(dir);
}
