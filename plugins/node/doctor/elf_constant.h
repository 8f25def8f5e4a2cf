/* A constant of a shared library, read from its file without loading it. */
#ifndef STEELYARD_DOCTOR_ELF_CONSTANT_H
#define STEELYARD_DOCTOR_ELF_CONSTANT_H

#include <stdbool.h>

/* A constant that a library exports, read from its file: false when it is no ELF file of this
 * machine, or exports no such object. A file that is cut short meanwhile ends the process with
 * SIGBUS. */
bool sy_read_elf_constant(const char *path, const char *name, unsigned *value);

#endif
