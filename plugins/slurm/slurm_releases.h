/* What differs between the releases of Slurm; tried with 22.05, 24.11 and 26.05. */
#ifndef STEELYARD_SLURM_RELEASES_H
#define STEELYARD_SLURM_RELEASES_H

#include <slurm/slurm.h>

/* ESPANK_JOB_FAILURE of slurm_errno.h, by number for headers before 25.05. */
#define SY_JOB_FAILURE 3012

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)

#define SY_JOB_ID_OF(message) ((message)->step_id.job_id)

static inline void sy_free_conf(slurm_conf_t *conf)
{
	slurm_free_conf(conf);
}

static inline int sy_load_job(job_info_msg_t **answer, uint32_t job_id, uint16_t flags)
{
	slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;

	id.job_id = job_id;
	return slurm_load_job(answer, id, flags);
}

#else

#define SY_JOB_ID_OF(message) ((message)->job_id)

static inline void sy_free_conf(slurm_conf_t *conf)
{
	slurm_free_ctl_conf(conf);
}

static inline int sy_load_job(job_info_msg_t **answer, uint32_t job_id, uint16_t flags)
{
	return slurm_load_job(answer, job_id, flags);
}

#endif

#endif
