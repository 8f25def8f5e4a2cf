/* The plugin inside slurmd itself, as root. */
#ifndef STEELYARD_SLURM_SLURMD_H
#define STEELYARD_SLURM_SLURMD_H

/* It starts: what a crash or reboot has left of dead jobs is undone, and what counts for jobs is
 * loaded and kept until slurmd's end, so that no job waits for that. */
void sy_slurmd_begin(int ac, char **av);
void sy_slurmd_end(void);

#endif
