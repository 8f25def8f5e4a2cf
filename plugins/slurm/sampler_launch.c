#include "sampler_launch.h"

#include <stdio.h>
#include <unistd.h>

#include "base/exec.h"
#include "job/samplers.h"
#include "job_cgroup.h"
#include "sampler/kernel_count.h"

struct sy_node_program sy_slurm_program(const struct sy_config *config)
{
	return (struct sy_node_program){.path = config->node.node_program,
					.run_dir = config->node.run_dir,
					/* `steelyard cluster down` looks for it */
					.variable = "SLURM_CONF",
					.egress = sy_egress_from_slurm};
}

void sy_slurm_accounting_program(const struct sy_config *config, char path[SY_PATH_SIZE])
{
	(void)sy_program_beside(config->node.node_program, "steelyard-slurmdb", path, SY_PATH_SIZE);
}

const char *sy_slurm_bpf(const struct sy_config *config, char path[SY_PATH_SIZE])
{
	return config->node.bpf &&
		       sy_program_beside(config->node.node_program, SY_LOADER, path, SY_PATH_SIZE)
		   ? path
		   : NULL;
}

struct sy_command_job sy_slurm_command_job(const struct sy_config *config,
					   const struct sy_step *step,
					   const struct sy_job_facts *facts)
{
	struct sy_command_job job = {.program = sy_slurm_program(config),
				     .policy = config->node.netem_policy,
				     .node = step->node,
				     .job_id = step->id,
				     .uid = step->uid};

	if (facts) {
		job.groups = facts->groups;
		job.group_count = facts->group_count;
		job.partition = facts->partition;
		job.has_whole_host = facts->has_whole_host;
	}
	return job;
}

int sy_slurm_launch(const struct sy_config *config, const struct sy_step *step,
		    const struct sockaddr_un *control, char *const *fields, struct sy_error *err)
{
	char marks[2][320], bpf[SY_PATH_SIZE];
	struct sy_launch launch = {.program = sy_slurm_program(config),
				   .bpf = sy_slurm_bpf(config, bpf),
				   .record_dir = config->node.record_dir,
				   .job_id = step->id,
				   .node = step->node,
				   .rate_hz = config->node.rate_hz,
				   .watch = getpid(),
				   .uid = step->uid,
				   .gid = step->gid,
				   .control = control,
				   .mark = {marks[0], marks[1]},
				   .marks = 2,
				   .job_fields = fields};

	/* What slurmd gives every task of the job on this node, and nobody else. */
	(void)snprintf(marks[0], sizeof(marks[0]), "SLURM_JOB_ID=%u", step->job_id);
	(void)snprintf(marks[1], sizeof(marks[1]), "SLURMD_NODENAME=%s", step->node);
	return sy_launch_sampler(&launch, NULL, err);
}
