/* File systems whose packets are the kernel's or a daemon's, and no job's. */
#ifndef STEELYARD_NETEM_KERNEL_MOUNTS_H
#define STEELYARD_NETEM_KERNEL_MOUNTS_H

#include <jansson.h>

/* Into `notes` of the document that the job's own sockets alone were shaped, and which network file
 * systems `mounts` (as /proc/self/mounts, proc(5)) has, which do not use them; nothing where it has
 * none. That it cannot be read is noted, too. */
void sy_netem_note_mounts(json_t *document, const char *mounts);

#endif
