/* Which of a node's accelerators are the job's, and the joules of those.
 *
 * Meters know no jobs. Tasks tell what the scheduler has given them, and which devices the kernel
 * lets them open (plugins/slurm/own_gpus.h); where neither says it surely, it is not known. */
#ifndef STEELYARD_RECORD_GPUS_H
#define STEELYARD_RECORD_GPUS_H

#include "meters/meters.h"
#include "record/message.h"

/* energy.zones[].of_job and energy.gpus, as it is known by now; zones and what was told of the job
 * are in the record. */
void sy_record_gpus(json_t *record, const struct sy_meters *meters, const struct sy_told *told);

/* Whether the node has any: where it has none nobody need say how much they used. */
bool sy_has_gpus(const struct sy_meters *meters);

/* What those of the job have used by now, of the readings of all meters, in µJ; SY_UNKNOWN. */
int64_t sy_gpu_energy_uj(const struct sy_meters *meters, const struct sy_told *told,
			 const int64_t zone_uj[]);

/* energy.gpu_energy_j, of what the zones have. */
void sy_record_gpu_energy(json_t *record);

#endif
