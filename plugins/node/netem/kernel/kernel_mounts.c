#include "netem/kernel/kernel_mounts.h"

#include "base/document.h"

#include <errno.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHOWN_SIZE 200

/* In Linux (fs/Kconfig, "Network File Systems"), and those of vendors and of FUSE. */
static const char *const types[] = {
    "nfs",    "nfs4",	   "cifs",	 "smb3",	   "ceph",	 "lustre",   "afs",
    "beegfs", "gpfs",	   "9p",	 "panfs",	   "pvfs2",	 "orangefs", "coda",
    "wekafs", "fuse.ceph", "fuse.sshfs", "fuse.glusterfs", "fuse.cvmfs2"};

static bool is_networked(const struct mntent *mount)
{
	/* A plain "fuse" tells of a network only by its source, HOST:PATH; cvmfs2 is one such. */
	if (!strcmp(mount->mnt_type, "fuse"))
		return strchr(mount->mnt_fsname, ':') || !strcmp(mount->mnt_fsname, "cvmfs2");
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(mount->mnt_type, types[i]))
			return true;
	return false;
}

/* As many as there is room for. */
static int list(FILE *file, char *text)
{
	char line[4096];
	struct mntent mount;
	size_t used = 0;
	int count = 0;

	while (getmntent_r(file, &mount, line, sizeof(line))) {
		size_t length = strlen(mount.mnt_dir) + strlen(mount.mnt_type) + 5;

		if (!is_networked(&mount))
			continue;
		count++;
		if (used + length >= SHOWN_SIZE - 8)
			continue;
		used += (size_t)snprintf(text + used, SHOWN_SIZE - used, "%s%s (%s)",
					 used ? ", " : "", mount.mnt_dir, mount.mnt_type);
	}
	return count;
}

void sy_netem_note_mounts(json_t *document, const char *mounts)
{
	char text[SHOWN_SIZE] = "";
	FILE *file = setmntent(mounts, "re");

	if (!file) {
		sy_json_note(document,
			     "only the job's own sockets were shaped; whether file systems of the "
			     "network are mounted, which do not use them, is not known: %s: %s",
			     mounts, strerror(errno));
		return;
	}
	if (list(file, text) > 0)
		sy_json_note(document,
			     "only the job's own sockets were shaped: file systems that the kernel "
			     "or a daemon reads over the network were not: %s; ask for the node "
			     "exclusively",
			     *text ? text : "names too long to tell");
	(void)endmntent(file);
}
