/* Which job, step and node this slurmstepd serves. */
#ifndef STEELYARD_SLURM_STEP_IDENTITY_H
#define STEELYARD_SLURM_STEP_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <slurm/spank.h>

struct sy_step {
	uint32_t job_id;
	char id[16]; /* the same as text */
	uint32_t step_id;
	uint32_t node_index; /* of this node in the step, from 0 */
	uid_t uid;
	gid_t gid;
	bool extern_step; /* the one that PrologFlags=Contain makes; spans the job, sees no options
			   */
	bool batch_step;
	bool extern_runs; /* some extern step of this job is on this node */
	bool batch_runs;  /* the job has a batch step on this node */
	char node[256];	  /* Slurm's name of the node, not the host's */
};

/* Fill it in; -1 when Slurm does not even report the job's id. */
int sy_step_identify(spank_t spank, struct sy_step *step);

/* The slurmstepd of the job's extern step on this node, by its socket (unix(7) SO_PEERCRED: the
 * listener's id); 0: none. */
pid_t sy_step_extern_pid(const struct sy_step *step);

/* A variable of the job's environment; false when it is not there (or empty). */
bool sy_step_variable(spank_t spank, const char *name, char *value, size_t size);

/* The job's nodes as Slurm writes them ("n[1-3,7]"); false: unknown. */
bool sy_step_list_nodes(spank_t spank, const struct sy_step *step, char *list, size_t size);

/* Their number; -1: unknown. */
long sy_step_count_nodes(spank_t spank, const struct sy_step *step);

#endif
