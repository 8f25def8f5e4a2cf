#include "allocation.h"

#include "base/file.h"
#include "base/number.h"
#include "record/message_grammar.h"
#include "sampler_launch.h"

#include <dirent.h>
#include <fcntl.h>
#include <slurm/slurm.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

#define MOST 64 /* of one maker in a node */

/* A list with commas; "-": empty. */
struct list {
	char text[SY_GPUS_SIZE];
};

static void add_word(struct list *list, const char *word)
{
	size_t used = strlen(list->text);

	(void)snprintf(list->text + used, sizeof(list->text) - used, "%s%s", used ? "," : "", word);
}

static const char *text_or_dash(const struct list *list)
{
	return *list->text ? list->text : "-";
}

/* Device files of one vendor, below /dev. */
static void find_devices(const char *name, int first, struct list *open, struct list *denied)
{
	for (int i = first; i < first + MOST; i++) {
		char path[40];

		(void)snprintf(path, sizeof(path), "/dev/%s%d", name, i);
		if (access(path, F_OK) == 0)
			add_word(access(path, R_OK | W_OK) == 0 ? open : denied,
				 path + strlen("/dev/"));
	}
}

/* Half a GPU is no device of its own, and Slurm lists it by a number among others. */
static bool is_shared(spank_t spank, const char *visible)
{
	char value[32];

	return strstr(visible, "MIG-") ||
	       sy_step_variable(spank, "SLURM_SHARDS_ON_NODE", value, sizeof(value)) ||
	       sy_step_variable(spank, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", value, sizeof(value));
}

/* Slurm's own numbers, which are those of this node. A batch script passes its variables on to
 * steps on other nodes: there only the step's variable counts. CUDA_VISIBLE_DEVICES restarts at
 * 0 where devices are constrained, but a UUID is unique. */
static void read_listed(spank_t spank, const struct sy_step *step, char *value, size_t size)
{
	bool is_of_job = step->batch_step || step->step_id == SLURM_INTERACTIVE_STEP;
	char visible[SY_GPUS_SIZE] = "";

	(void)sy_step_variable(spank, "CUDA_VISIBLE_DEVICES", visible, sizeof(visible));
	if (!sy_step_variable(spank, is_of_job ? "SLURM_JOB_GPUS" : "SLURM_STEP_GPUS", value, size))
		(void)snprintf(value, size, "-");
	else if (is_shared(spank, visible))
		(void)snprintf(value, size, "shared");
	else if (!strncmp(visible, "GPU-", 4))
		(void)snprintf(value, size, "%s", visible);
}

void sy_own_gpus_report(spank_t spank, const struct sy_step *step, struct sy_message_queue *queue)
{
	struct list open = {""}, denied = {""};
	char value[SY_GPUS_SIZE];

	read_listed(spank, step, value, sizeof(value));
	if (strcmp(value, "-") != 0 || access("/dev/nvidiactl", F_OK) == 0)
		find_devices("nvidia", 0, &open, &denied);
	if (strcmp(value, "-") != 0 || access("/dev/dri", F_OK) == 0)
		find_devices("dri/renderD", 128, &open, &denied);
	if (strcmp(value, "-") != 0 || *open.text || *denied.text)
		sy_queue_send(queue, "gpus %s %s %s", value, text_or_dash(&open),
			      text_or_dash(&denied));
}
