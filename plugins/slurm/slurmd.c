#include "spank_steelyard.h"

#include <slurm/spank.h>

#include "allocation.h"
#include "conditions.h"
#include "config.h"
#include "job/kernel_count.h"
#include "sampler_launch.h"

#define PATIENCE_MS 10000 /* of a node that has just booted, and is busy */
#define TRIES	    5	  /* an earlier job's sweep may unload it between load and keep */

static int program_fd = -1; /* keeps the program that counts loaded */

static void complain(const char *sentence)
{
	slurm_error("steelyard: %s", sentence);
}

static void load_bpf(const struct sy_config *config, const struct sy_node_program *program)
{
	char path[SY_PATH_SIZE];
	const char *bpf = sy_slurm_bpf(config, path);

	sy_counted_retry(program);
	if (!bpf)
		return;
	for (int i = 0; i < TRIES && program_fd < 0; i++) {
		sy_counted_load(program, bpf, PATIENCE_MS);
		program_fd = sy_counted_keep();
	}
	sy_sweep_bpf(program, bpf);
}

void sy_slurmd_begin(int ac, char **av)
{
	struct sy_config config;
	struct sy_node_program program;

	sy_config_parse(&config, ac, av, complain);
	program = sy_slurm_program(&config);
	sy_exclusive_forget(config.node.run_dir);
	sy_conditions_reap(&config, "slurmd");
	sy_finish_records(&program, "slurmd");
	load_bpf(&config, &program);
}

void sy_slurmd_end(void)
{
	sy_counted_release(program_fd);
	program_fd = -1;
}
