/* The files that a scheduler loads and starts on this node, and their releases. */
#ifndef STEELYARD_DOCTOR_PLUGIN_H
#define STEELYARD_DOCTOR_PLUGIN_H

#include "doctor/check.h"

/* This very program, and the one that jobs are weighed with. */
void sy_doctor_programs(struct sy_doctor *doctor);

/* Does Slurm's plugin load, and was it built for the slurmd that is here? And is the program there
 * that writes AdminComment? */
void sy_doctor_plugin(struct sy_doctor *doctor);

/* A program that lies beside node_program, or beside this one: its path; false: there is none. */
bool sy_doctor_beside(const struct sy_doctor *doctor, const char *name, char path[SY_PATH_SIZE]);

#endif
