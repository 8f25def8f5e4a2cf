#include "exclusive.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "launch_sampler.h"

#define ENDING	  ".cores"
#define ANSWER_MS 1000 /* some ms; else the job's start would wait for slurmctld */
#define NAME_SIZE 300

/* How many numbers a list like "0-3,8" names. */
static long list_length(const char *at)
{
	long count = 0;

	while (isdigit((unsigned char)*at)) {
		char *end;
		long first = strtol(at, &end, 10);
		long last = *end == '-' ? strtol(end + 1, &end, 10) : first;

		count += last - first + 1;
		at = end + (*end == ',');
	}
	return count;
}

struct question {
	const char *run_dir, *node;
	long cores;
};

static void format_file_name(char name[NAME_SIZE], const struct question *question,
			     const char *ending)
{
	(void)snprintf(name, NAME_SIZE, "%.200s" ENDING "%s", question->node, ending);
}

/* Renamed into place: two jobs may begin at once. */
static void write_answer(const struct question *question)
{
	cleanup_close int folder = open(question->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_SIZE], part[NAME_SIZE], number[32], ending[32];
	int fd;

	(void)snprintf(ending, sizeof(ending), ".%d", (int)getpid());
	format_file_name(name, question, "");
	format_file_name(part, question, ending);
	fd = openat(folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	(void)snprintf(number, sizeof(number), "%ld\n", question->cores);
	if (sy_write_all(fd, number, strlen(number)) < 0 ||
	    renameat(folder, part, folder, name) < 0)
		(void)unlinkat(folder, part, 0);
	(void)close(fd);
}

/* A separate process asks: the job's start does not wait for an absent slurmctld. */
static void query_slurmctld(struct question *question, const struct sy_config *config)
{
	struct sy_node_program program = sy_slurm_program(config);
	char path[SY_PATH_SIZE], text[32] = "";
	struct sy_spawn_output answer = {.out = text, .out_size = sizeof(text)};
	struct sy_arguments arguments;
	int64_t cores;

	sy_slurm_accounting_program(config, path);
	sy_begin_arguments(&arguments, &program);
	arguments.argv[0] = path;
	sy_option(&arguments, "--cores", question->node);
	if (sy_spawn_and_read(&arguments, ANSWER_MS, &answer, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (!sy_number(text, &cores) || cores <= 0)
		return;
	question->cores = (long)cores;
	write_answer(question);
}

static void read_answer(struct question *question)
{
	cleanup_close int folder = open(question->run_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_SIZE], text[32];
	int64_t cores;

	format_file_name(name, question, "");
	if (folder >= 0 && sy_read_at(folder, name, text, sizeof(text)) > 0 &&
	    sy_number(text, &cores))
		question->cores = (long)cores;
}

enum sy_exclusive sy_exclusive_of(spank_t spank, const struct sy_config *config, const char *node)
{
	struct question question = {.run_dir = config->node.run_dir, .node = node};
	char *cores = NULL;

	if (!sy_node_is_host(node) ||
	    spank_get_item(spank, S_JOB_ALLOC_CORES, &cores) != ESPANK_SUCCESS || !cores)
		return SY_NOT_SAID;
	read_answer(&question);
	if (question.cores == 0)
		query_slurmctld(&question, config);
	if (question.cores == 0)
		return SY_NOT_SAID;
	return list_length(cores) >= question.cores ? SY_ALONE : SY_SHARED;
}

void sy_exclusive_forget(const char *run_dir)
{
	cleanup_dir DIR *dir = opendir(run_dir);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *ending = strstr(entry->d_name, ENDING);

		if (ending && strspn(ending + strlen(ENDING), ".0123456789") ==
				  strlen(ending + strlen(ENDING)))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
	}
}
