#include "exclusive.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "sampler_launch.h"

#define ENDING	  ".cores"
#define ANSWER_MS 1000 /* some ms; else the job's start would wait for slurmctld */

static void format_path(char path[2 * SY_PATH_SIZE], const struct sy_config *config,
			const char *node)
{
	(void)snprintf(path, 2 * SY_PATH_SIZE, "%s/%.200s" ENDING, config->node.run_dir, node);
}

/* A line with a number; 0: no such line. A file that is just being written has none. */
static long parse_answer(const char *text)
{
	int64_t cores;
	const char *end = sy_number(text, &cores);

	return end && *end == '\n' ? (long)cores : 0;
}

/* A separate process asks: the job's start does not wait for an absent slurmctld. */
static long query_slurmctld(const struct sy_config *config, const char *node, const char *path)
{
	struct sy_node_program program = sy_slurm_program(config);
	char accounting[SY_PATH_SIZE], text[32] = "";
	struct sy_spawn_output answer = {.out = text, .out_size = sizeof(text)};
	struct sy_arguments arguments;
	cleanup_close int fd = -1;
	long cores;

	sy_slurm_accounting_program(config, accounting);
	sy_begin_arguments(&arguments, &program);
	arguments.argv[0] = accounting;
	sy_option(&arguments, "--cores", node);
	if (sy_spawn_and_read(&arguments, ANSWER_MS, &answer, NULL) < 0)
		return 0;
	cores = parse_answer(text);
	if (cores > 0)
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)sy_write_all(fd, text, strlen(text));
	return cores;
}

enum sy_exclusive sy_exclusive_of(spank_t spank, const struct sy_config *config, const char *node)
{
	char path[2 * SY_PATH_SIZE], text[32];
	char *allocated = NULL;
	long cores = 0;

	if (!sy_node_is_host(node) ||
	    spank_get_item(spank, S_JOB_ALLOC_CORES, &allocated) != ESPANK_SUCCESS || !allocated)
		return SY_NOT_SAID;
	format_path(path, config, node);
	if (sy_read_path(path, text, sizeof(text)) > 0)
		cores = parse_answer(text);
	if (cores == 0)
		cores = query_slurmctld(config, node, path);
	if (cores == 0)
		return SY_NOT_SAID;
	return sy_parse_number_list(allocated, NULL, 0) >= cores ? SY_ALONE : SY_SHARED;
}

void sy_exclusive_forget(const char *run_dir)
{
	cleanup_dir DIR *dir = opendir(run_dir);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (sy_ends_with(entry->d_name, ENDING))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
}
