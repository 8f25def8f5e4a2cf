/* Mounted file systems of the probe's document: /proc/self/mountinfo, as proc(5) describes it. */
#ifndef STEELYARD_PROBE_MOUNTS_H
#define STEELYARD_PROBE_MOUNTS_H

#include "base/document.h"

void sy_probe_filesystems(int root, struct sy_document *document);

/* A field of /proc/mounts and mountinfo: \040 and the like become the characters they stand for, in
 * place. */
void sy_unescape_mount(char *text);

#endif
