/* The Slurm plugin's entry points: they only choose by context. Each returns 0 whatever happens: a
 * job never fails because of us. (Wrong options are refused by their callbacks, options.c; a
 * condition that was asked for and cannot be had ends the job's tasks, conditions.c.)
 *
 * job_prolog and job_epilog are left out on purpose: exporting them costs every job 17 to 30 ms. */
#include "spank_steelyard.h"

#include <stdlib.h>

#include "conditions.h"
#include "config.h"
#include "options.h"
#include "slurm_releases.h"

SPANK_PLUGIN(steelyard, 1)

/* Slurm 25.05 and later drain the node when slurm_spank_init fails, unless a plugin blames the
 * job. Ours does not fail; should it ever, no node is lost. */
int slurm_spank_init_failure_mode = SY_JOB_FAILURE;

/* `new_job`: sbatch or salloc, whose job is not part of the one they may run in. */
static void init_client(spank_t spank, int ac, char **av, bool new_job)
{
	static struct sy_config config;

	sy_config_parse(&config, ac, av, NULL); /* faults are for the admin: slurmstepd logs them */
	if (new_job && getenv("SLURM_JOB_ID"))
		sy_options_forget_environment();
	sy_options_register(spank, &config);
}

int slurm_spank_init(spank_t spank, int ac, char **av)
{
	switch (spank_context()) {
	case S_CTX_LOCAL:
		init_client(spank, ac, av, false);
		break;
	case S_CTX_ALLOCATOR:
		init_client(spank, ac, av, true);
		break;
	case S_CTX_REMOTE:
		sy_stepd_init(spank, ac, av);
		break;
	case S_CTX_SLURMD:
		sy_slurmd_begin(ac, av);
		break;
	default:
		break;
	}
	return 0;
}

/* A callback of slurmstepd; some of them exist elsewhere, too. */
#define IN_STEPD(callback, work)                                                                   \
	int callback(spank_t spank, int ac, char **av)                                             \
	{                                                                                          \
		(void)spank;                                                                       \
		(void)ac;                                                                          \
		(void)av;                                                                          \
		if (spank_context() == S_CTX_REMOTE)                                               \
			work;                                                                      \
		return 0;                                                                          \
	}

IN_STEPD(slurm_spank_init_post_opt, sy_stepd_start(spank))
IN_STEPD(slurm_spank_task_init_privileged, sy_conditions_join())
IN_STEPD(slurm_spank_task_init, sy_stepd_child(spank))
IN_STEPD(slurm_spank_task_post_fork, sy_stepd_task(spank))
IN_STEPD(slurm_spank_task_exit, sy_stepd_task_exit(spank))
IN_STEPD(slurm_spank_exit, sy_stepd_exit(spank))

int slurm_spank_slurmd_exit(spank_t spank, int ac, char **av)
{
	(void)spank;
	(void)ac;
	(void)av;
	sy_slurmd_end();
	return 0;
}
