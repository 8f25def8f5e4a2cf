/* Which mounts are CVMFS repositories. Their type is plain fuse; the source names the client. */
#ifndef STEELYARD_BASE_CVMFS_H
#define STEELYARD_BASE_CVMFS_H

#include <stdbool.h>
#include <string.h>

/* cvmfs2 is CERN's client, cernvmfs the one in Rust (crate cvmfs 0.4). */
static inline bool sy_is_cvmfs_mount(const char *type, const char *source)
{
	return !strcmp(type, "fuse.cvmfs2") ||
	       (!strcmp(type, "fuse") &&
		(!strcmp(source, "cvmfs2") || !strcmp(source, "cernvmfs")));
}

#endif
