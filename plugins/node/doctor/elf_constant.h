/* A constant of a shared library, read from its file: for a library that cannot be loaded here,
 * since its functions of Slurm are bound at once (packages are linked with -z now). */
#ifndef STEELYARD_DOCTOR_ELF_CONSTANT_H
#define STEELYARD_DOCTOR_ELF_CONSTANT_H

#include <stdbool.h>

/* false: no ELF file of this machine, or it exports no such object. A file that is cut short while
 * it is read ends the process with SIGBUS: call it in one that may die. */
bool sy_elf_constant(const char *path, const char *name, unsigned *value);

#endif
