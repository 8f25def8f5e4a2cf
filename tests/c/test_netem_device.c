/* Cards that carry RDMA beside Ethernet, by sysfs as rdma-core's kernel drivers make it. */
#include "tap.h"

#include "base/file.h"
#include "netem/kernel/device.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

static char folder[] = "/tmp/sy-device-XXXXXX";
static int root;

/* The folders of a path, then the file, where there is text for it. */
static void put(const char *name, const char *text)
{
	char path[200];
	int fd;

	(void)snprintf(path, sizeof(path), "%s", name);
	for (char *at = path; (at = strchr(at + 1, '/')); *at = '/') {
		*at = '\0';
		(void)mkdirat(root, path, 0755);
	}
	if (!text) {
		(void)mkdirat(root, path, 0755);
		return;
	}
	fd = openat(root, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ok(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "made %s", path);
	(void)close(fd);
}

/* A ConnectX of two ports, one of them under a bond with a VLAN, and a card without RDMA. */
static void make_tree(void)
{
	put("sys/class/net/ens1f0np0/ifindex", "2\n");
	put("sys/class/net/ens1f0np0/device/infiniband/mlx5_0", NULL);
	put("sys/class/net/bond0/ifindex", "3\n");
	put("sys/class/net/bond0/lower_ens1f0np0", NULL);
	put("sys/class/net/bond0.12/ifindex", "4\n");
	put("sys/class/net/bond0.12/lower_bond0", NULL);
	put("sys/class/net/eno1/ifindex", "5\n");
	put("sys/class/net/eno1/device/driver", NULL);
	put("sys/class/net/eno1.7/ifindex", "6\n");
	put("sys/class/net/eno1.7/lower_eno1", NULL);
}

static void test_rdma(void)
{
	ok(sy_has_rdma(root, "ens1f0np0", 2), "a card with RDMA");
	ok(sy_has_rdma(root, "bond0", 3), "a bond above it");
	ok(sy_has_rdma(root, "bond0.12", 4), "a VLAN on that");
	ok(!sy_has_rdma(root, "eno1", 5), "a card without");
	ok(!sy_has_rdma(root, "eno1.7", 6), "a VLAN on that");
	ok(!sy_has_rdma(root, "ens1f0np0", 7), "another namespace's device of that name");
	ok(!sy_has_rdma(root, "eth9", 2), "no such device");
}

int main(void)
{
	char remove[80];

	root = mkdtemp(folder) ? open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	make_tree();
	test_rdma();
	(void)close(root);
	(void)snprintf(remove, sizeof(remove), "rm -r %s", folder);
	return system(remove) != 0 || done_testing();
}
