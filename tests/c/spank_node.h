/* For tests of the plugin on a node: a stand-in for steelyard-node that notes its arguments and
 * prints what the test sets, the sockets of other steps, and a task. */
#ifndef STEELYARD_SPANK_NODE_H
#define STEELYARD_SPANK_NODE_H

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "spank_host.h"

static char notes[96];

__attribute__((unused)) static void write_text(const char *name, const char *text, mode_t mode)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	if (!file)
		return;
	(void)fputs(text, file);
	(void)fclose(file);
	(void)chmod(path, mode);
}

/* steelyard-node for one test: notes its arguments, then does `netem`. */
__attribute__((unused)) static void write_program(const char *netem)
{
	char text[1024];

	(void)snprintf(text, sizeof(text),
		       "#!/bin/sh\n[ \"$1\" = sample ] && exit\necho \"$@\" >> %s\n%s\n", notes,
		       netem);
	write_text("node", text, 0700);
	(void)unlink(notes);
}

__attribute__((unused)) static const char *read_requests(void)
{
	static char text[4096];
	FILE *file = fopen(notes, "r");
	size_t length = file ? fread(text, 1, sizeof(text) - 1, file) : 0;

	if (file)
		(void)fclose(file);
	text[length] = '\0';
	return text;
}

/* A listening socket as every slurmstepd has one: the plugin finds node and steps by them. */
__attribute__((unused)) static int listen_as_step(unsigned step)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/n9_%u.%u", dir, JOB, step);
	(void)unlink(address.sun_path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 64) != 0)
		return -1;
	return fd;
}

/* A task of the step: its exit code, and what it wrote to stderr. */
__attribute__((unused)) static int run_task(void *plugin, char *text, size_t size)
{
	int fds[2], status;
	ssize_t got;
	pid_t child;

	text[0] = '\0';
	if (pipe(fds) != 0)
		return -1;
	(void)fflush(stdout);
	child = fork();
	if (child == 0) {
		(void)dup2(fds[1], 2);
		(void)call(plugin, "slurm_spank_task_init_privileged");
		(void)call(plugin, "slurm_spank_task_init");
		_exit(0);
	}
	(void)close(fds[1]);
	got = read(fds[0], text, size - 1);
	text[got > 0 ? got : 0] = '\0';
	(void)close(fds[0]);
	(void)waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
