#include "user_commands.h"

#include <stdlib.h>

#include "config.h"
#include "options.h"

void sy_client_init(spank_t spank, int ac, char **av, bool new_job)
{
	static struct sy_config config;

	sy_config_parse(&config, ac, av, NULL); /* faults are for the admin: slurmstepd logs them */
	if (new_job && getenv("SLURM_JOB_ID"))
		sy_options_forget_environment();
	sy_options_register(spank, &config);
}
