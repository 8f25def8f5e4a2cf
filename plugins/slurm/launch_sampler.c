#include "launch_sampler.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exec.h"
#include "job_cgroup.h"
#include "sampler/loader.h"

struct sy_node_program sy_slurm_program(const struct sy_config *config)
{
	return (struct sy_node_program){.path = config->node_program,
					.run_dir = config->run_dir,
					/* `steelyard cluster down` looks for it */
					.variable = "SLURM_CONF",
					.egress = sy_egress_from_slurm};
}

void sy_slurm_accounting_program(const struct sy_config *config, char path[SY_PATH_SIZE])
{
	(void)sy_program_beside(config->node_program, "steelyard-slurmdb", path, SY_PATH_SIZE);
}

const char *sy_slurm_bpf(const struct sy_config *config, char path[SY_PATH_SIZE])
{
	return config->bpf && sy_program_beside(config->node_program, SY_LOADER, path, SY_PATH_SIZE)
		   ? path
		   : NULL;
}

struct sy_command_job sy_slurm_command_job(const struct sy_config *config,
					   const struct sy_step *step,
					   const struct sy_job_facts *facts,
					   char id[SY_JOB_ID_SIZE])
{
	struct sy_command_job job = {.program = sy_slurm_program(config),
				     .policy = config->netem_policy,
				     .node = step->node,
				     .job_id = id,
				     .uid = step->uid};

	(void)snprintf(id, SY_JOB_ID_SIZE, "%u", step->job_id);
	if (facts) {
		job.groups = facts->groups;
		job.group_count = facts->group_count;
		job.partition = facts->partition;
		job.whole_host = facts->whole_host;
	}
	return job;
}

/* What slurmd gives every task of the job on this node, and nobody else. */
static void fill_marks(struct sy_launch *launch, const struct sy_step *step, char (*text)[320])
{
	(void)snprintf(text[0], sizeof(text[0]), "SLURM_JOB_ID=%u", step->job_id);
	(void)snprintf(text[1], sizeof(text[1]), "SLURMD_NODENAME=%s", step->node);
	launch->mark[0] = text[0];
	launch->mark[1] = text[1];
	launch->marks = 2;
}

int sy_slurm_launch(const struct sy_config *config, const struct sy_step *step,
		    const struct sockaddr_un *control, char *const *fields, struct sy_error *err)
{
	char id[SY_JOB_ID_SIZE], marks[2][320], bpf[SY_PATH_SIZE];
	struct sy_launch launch = {.program = sy_slurm_program(config),
				   .bpf = sy_slurm_bpf(config, bpf),
				   .record_dir = config->record_dir,
				   .job_id = id,
				   .node = step->node,
				   .rate_hz = config->rate_hz,
				   .watch = getpid(),
				   .uid = step->uid,
				   .gid = step->gid,
				   .control = control,
				   .job_fields = fields};

	(void)snprintf(id, sizeof(id), "%u", step->job_id);
	fill_marks(&launch, step, marks);
	return sy_launch_sampler(&launch, NULL, err);
}
