#include "own_gpus.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <slurm/slurm.h>

#include "record/message_grammar.h"

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
