#include "launch_sampler.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "record/unfinished.h"
#include "run_dir.h"
#include "spawn.h"

#define CONTROL_FD     (SY_SPAWN_FDS - 1)
#define JOB_FIELDS_MAX 16

/* A socket only root can send to. */
static int bind_control(const struct sockaddr_un *address, struct sy_error *err)
{
	int fd;
	mode_t before;

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

/* What slurmd gives every task of the job on this node, and nobody else. */
static void fill_marks(struct sy_arguments *to, const struct sy_step *step, char (*text)[320])
{
	(void)snprintf(text[0], sizeof(text[0]), "SLURM_JOB_ID=%u", step->job_id);
	(void)snprintf(text[1], sizeof(text[1]), "SLURMD_NODENAME=%s", step->node);
	sy_option(to, "--orphan", text[0]);
	sy_option(to, "--orphan", text[1]);
}

static void fill_arguments(struct sy_arguments *to, const struct sy_launch *launch,
			   char (*text)[32])
{
	const struct sy_config *config = launch->config;
	const struct sy_step *step = launch->step;

	(void)snprintf(text[0], sizeof(text[0]), "%u", step->job_id);
	(void)snprintf(text[1], sizeof(text[1]), "%g", config->rate_hz);
	(void)snprintf(text[2], sizeof(text[2]), "%d", (int)getpid());
	(void)snprintf(text[3], sizeof(text[3]), "%u:%u", step->uid, step->gid);
	(void)snprintf(text[4], sizeof(text[4]), "%d", CONTROL_FD);
	sy_argument(to, config->node_program);
	sy_argument(to, "sample");
	sy_option(to, "--record-dir", config->record_dir);
	sy_option(to, "--run-dir", config->run_dir);
	sy_option(to, "--job-id", text[0]);
	sy_option(to, "--node", step->node);
	sy_option(to, "--rate", text[1]);
	sy_option(to, "--watch", text[2]);
	sy_option(to, "--owner", text[3]);
	sy_option(to, "--control", launch->control->sun_path);
	sy_option(to, "--control-fd", text[4]);
	for (size_t i = 0; launch->job_fields[i] && i < JOB_FIELDS_MAX; i++)
		sy_option(to, "--job", launch->job_fields[i]);
}

int sy_launch_sampler(const struct sy_launch *launch, struct sy_error *err)
{
	struct sy_arguments arguments = {.count = 0};
	char text[5][32], marks[2][320];
	cleanup_close int control = -1, complaints = -1;

	if (sy_run_dir_make(launch->config->run_dir, err) < 0)
		return -1;
	control = bind_control(launch->control, err);
	if (control < 0)
		return -1;
	complaints = sy_complaints_open(launch->config->run_dir, launch->step->node);
	fill_arguments(&arguments, launch, text);
	fill_marks(&arguments, launch->step, marks);
	if (sy_spawn(&arguments, (int[SY_SPAWN_FDS]){-1, -1, complaints, control}, err) < 0) {
		(void)unlink(launch->control->sun_path);
		return -1;
	}
	return 0;
}

void sy_finish_records(const struct sy_config *config, const char *node)
{
	struct sy_arguments arguments = {.count = 0};
	cleanup_close int complaints = -1;

	if (!sy_unfinished_any(config->run_dir))
		return;
	complaints = sy_complaints_open(config->run_dir, node);
	sy_argument(&arguments, config->node_program);
	sy_argument(&arguments, "record");
	sy_option(&arguments, "--unfinished", config->run_dir);
	(void)sy_spawn(&arguments, (int[SY_SPAWN_FDS]){-1, -1, complaints, -1}, NULL);
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
