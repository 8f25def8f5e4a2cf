/* Whose packets a job's own condition does not touch: lines of /proc/self/mounts as Linux writes
 * them. */
#include "tap.h"

#include "netem/kernel/job_scope.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char local[] = "/dev/vda / ext4 rw,relatime 0 0\n"
			    "proc /proc proc rw 0 0\n"
			    "tmpfs /tmp tmpfs rw 0 0\n"
			    "lxcfs /var/lib/lxcfs fuse.lxcfs rw 0 0\n"
			    "/dev/fuse /run/user/0/doc fuse rw 0 0\n";
static const char far[] = "server:/export /nfs nfs4 rw,vers=4.2 0 0\n"
			  "10.0.0.1@tcp:/scratch /lustre/my\\040data lustre rw,flock 0 0\n"
			  "cvmfs2 /cvmfs/atlas.cern.ch fuse ro 0 0\n"
			  "cernvmfs /cvmfs/lab fuse ro 0 0\n"
			  "pvfs2fuse#tcp://io1:3334/orangefs /pvfs fuse rw 0 0\n"
			  "ceph-fuse /ceph fuse.ceph-fuse rw 0 0\n";

static char path[] = "/tmp/sy-mounts-XXXXXX";
static int fd;

static void add(const char *text)
{
	ok(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "written");
}

static const char *noted(json_t **document)
{
	*document = json_object();
	sy_netem_note_mounts(*document, path);
	return json_string_value(json_array_get(json_object_get(*document, "notes"), 0));
}

int main(void)
{
	const char *message;
	json_t *document;

	fd = mkstemp(path);
	add(local);
	ok(noted(&document) == NULL, "nothing of the network: nothing to say");
	json_decref(document);
	add(far);
	(void)close(fd);
	is_string(
	    noted(&document),
	    "only the job's own sockets were shaped: file systems that the kernel or a daemon "
	    "reads over the network were not: /nfs (nfs4), /lustre/my data (lustre), "
	    "/cvmfs/atlas.cern.ch (fuse), /cvmfs/lab (fuse), /pvfs (fuse), "
	    "/ceph (fuse.ceph-fuse); ask for the node exclusively",
	    "each is named");
	json_decref(document);
	(void)unlink(path);
	message = noted(&document);
	ok(message && strstr(message, "is not known"), "not to be read: told");
	json_decref(document);
	return done_testing();
}
