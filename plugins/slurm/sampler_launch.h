/* The sampler of a job of Slurm. */
#ifndef STEELYARD_SLURM_SAMPLER_LAUNCH_H
#define STEELYARD_SLURM_SAMPLER_LAUNCH_H

#include <sys/un.h>

#include "base/error.h"
#include "config.h"
#include "job/node_command.h"
#include "slurmctld_query.h"
#include "step_identity.h"

/* Our program as slurmstepd starts it: out of the job's cgroups. */
struct sy_node_program sy_slurm_program(const struct sy_config *config);

/* steelyard-slurmdb, which is installed in the same folder. */
void sy_slurm_accounting_program(const struct sy_config *config, char path[SY_PATH_SIZE]);

/* The loader in the same folder, whether it exists or not; NULL: not requested. */
const char *sy_slurm_bpf(const struct sy_config *config, char path[SY_PATH_SIZE]);

/* The identity of a step's commands. `facts` NULL: none is needed. */
struct sy_command_job sy_slurm_command_job(const struct sy_config *config,
					   const struct sy_step *step,
					   const struct sy_job_facts *facts);

/* Start it, as sy_launch_sampler(); `fields` is NULL-terminated. */
int sy_slurm_launch(const struct sy_config *config, const struct sy_step *step,
		    const struct sockaddr_un *control, char *const *fields, struct sy_error *err);

#endif
