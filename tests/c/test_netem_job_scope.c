/* Folders of jobs' cgroups whose removal failed as a process was dying: a later undo removes them,
 * and none that a state names, that holds a process, or that is another node's. */
#include "tap.h"

#include "netem/kernel/job_scope.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char above[600];

static const char *path_of(const char *name)
{
	static char path[700];

	(void)snprintf(path, sizeof(path), "%s/%s", above, name);
	return path;
}

static bool exists(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

static bool make_above(void)
{
	char line[4096], root[512], point[512];
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	bool found = false;

	while (mounts && !found && fgets(line, sizeof(line), mounts))
		found = strstr(line, " - cgroup2 ") &&
			sscanf(line, "%*s %*s %*s %511s %511s", root, point) == 2 &&
			!strcmp(root, "/");
	if (mounts)
		(void)fclose(mounts);
	if (!found)
		return false;
	(void)snprintf(above, sizeof(above), "%s/sy-test-scope-%d", point, (int)getpid());
	return mkdir(above, 0755) == 0;
}

static pid_t sleeper_in(const char *name)
{
	char path[800];
	pid_t pid = fork();
	FILE *file;

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", path_of(name));
	file = fopen(path, "we");
	ok(file && fprintf(file, "%d\n", (int)pid) > 0 && fclose(file) == 0, "%s has a process",
	   name);
	return pid;
}

static void check_sweep(void)
{
	static const char *const name[] = {"n.1", "n.2", "n.3", "nn.4", "n.5"};
	json_t *states = json_pack("{s:{}}", "n.2.json");
	char own[700];
	pid_t pid;

	for (size_t i = 0; i < 5; i++)
		ok(mkdir(path_of(name[i]), 0755) == 0, "%s is made", name[i]);
	pid = sleeper_in("n.3");
	(void)snprintf(own, sizeof(own), "%s", path_of("n.9"));
	is_int(sy_scope_sweep(own, "n", states), 2, "two are of nobody");
	ok(!exists("n.1") && !exists("n.5"), "and gone");
	ok(exists("n.2"), "one that a state names stays");
	ok(exists("n.3"), "one with a process stays");
	ok(exists("nn.4"), "one of another node stays");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	for (int i = 0; i < 1000 && exists("n.3"); i++) {
		(void)sy_scope_sweep(own, "n", states);
		(void)usleep(10000);
	}
	ok(!exists("n.3"), "with its process gone it goes");
	for (size_t i = 0; i < 5; i++)
		(void)rmdir(path_of(name[i]));
	(void)rmdir(above);
	json_decref(states);
}

int main(void)
{
	if (geteuid() != 0 || !make_above())
		return puts("1..0 # SKIP root and cgroups of version 2 are needed") == EOF;
	check_sweep();
	return done_testing();
}
