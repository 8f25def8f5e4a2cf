#include "job/container_leftovers.h"

#include "base/exec.h"
#include "base/file.h"
#include "job/config.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MARKS	 "/run/steelyard-containers"
#define MARK	 "steelyard-"
#define NOTES	 "/tmp"
#define NOTE	 ".steelyard."
#define LIMIT_MS 15000 /* 5 s for the job's last processes, some for an engine that is slow */
#define PROGRAM	 "steelyard-left"

static bool has_entry(const char *folder, const char *beginning)
{
	cleanup_dir DIR *dir = opendir(folder);
	struct dirent *entry;
	bool found = false;

	while (dir && !found && (entry = readdir(dir)))
		found = !strncmp(entry->d_name, beginning, strlen(beginning));
	return found;
}

/* False when the program is not installed or this process is not root. */
static bool find_program(const char *program, char path[SY_PATH_SIZE])
{
	return geteuid() == 0 && sy_program_beside(program, PROGRAM, path, SY_PATH_SIZE) &&
	       access(path, X_OK) == 0;
}

static void begin_arguments(struct sy_arguments *arguments, const struct sy_node_program *program,
			    const char *path)
{
	sy_begin_arguments(arguments, program);
	arguments->argv[0] = (char *)path;
	sy_argument(arguments, "sweep");
}

void sy_leftovers_remove(const struct sy_node_program *program, const char *job_id, uid_t user,
			 void (*log_line)(const char *line))
{
	struct sy_arguments arguments;
	char path[SY_PATH_SIZE], uid[16], out[8192] = "", *rest = NULL;
	struct sy_spawn_output answer = {.out = out, .out_size = sizeof(out)};
	struct sy_error err;

	if ((!has_entry(MARKS, MARK) && !has_entry(NOTES, NOTE)) ||
	    !find_program(program->path, path))
		return;
	begin_arguments(&arguments, program, path);
	sy_option(&arguments, "--job", job_id);
	(void)snprintf(uid, sizeof(uid), "%u", user);
	if (user != SY_LEFTOVERS_OF_ANYBODY)
		sy_option(&arguments, "--user", uid);
	if (sy_spawn_and_read(&arguments, LIMIT_MS, &answer, &err) < 0)
		log_line(err.text);
	for (char *line = strtok_r(out, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log_line(line);
	if (answer.message[0])
		log_line(answer.message);
}

void sy_leftovers_sweep(const struct sy_node_program *program)
{
	struct sy_arguments arguments;
	char path[SY_PATH_SIZE];

	if (!has_entry(MARKS, MARK) || !find_program(program->path, path))
		return;
	begin_arguments(&arguments, program, path);
	(void)sy_spawn(&arguments, (int[SY_SPAWN_FDS]){-1, -1, -1, -1}, NULL, NULL);
}
