/* The container layer: what the runtimes leave behind, judged by where PID 1, the root mount
 * and the namespaces really are. A left-over /.dockerenv is not a container. */
#include "probe/detectors.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

#define OTHER	     "container-other"
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

struct word_name {
	const char *word;
	const char *name;
};

/* Values of container= and of the manager's file, as systemd's container interface has them. */
static const char *const managers[] = {
    "docker", "podman", "lxc",	 "lxc-libvirt", "systemd-nspawn", "rkt", "openvz",
    "wsl",    "proot",	"pouch", "apptainer",	"singularity",	  "oci",
};

static const char *manager_name(const char *value)
{
	if (!strcmp(value, "singularity"))
		return "apptainer";
	if (!strcmp(value, "oci"))
		return OTHER;
	for (size_t i = 0; i < COUNT(managers); i++)
		if (!strcmp(managers[i], value))
			return managers[i];
	return OTHER;
}

static void examine_manager_files(int root, struct sy_layer *container)
{
	static const char *const files[] = {"/run/systemd/container",
					    "/run/host/container-manager"};
	char value[64];

	for (size_t i = 0; i < COUNT(files); i++)
		if (sy_read_line_at(root, files[i], value, sizeof(value)) > 0)
			sy_add_evidence(container, 4, manager_name(value), files[i], value);
}

/* A variable's value in an environ file (NUL between the entries), or NULL. */
static const char *variable(const char *environ_text, size_t length, const char *name)
{
	size_t name_length = strlen(name);

	for (const char *at = environ_text; at < environ_text + length; at += strlen(at) + 1)
		if (!strncmp(at, name, name_length) && at[name_length] == '=')
			return at + name_length + 1;
	return NULL;
}

static void examine_pid1_environ(int root, struct sy_layer *container)
{
	char text[8192];
	ssize_t length = sy_read_at(root, "/proc/1/environ", text, sizeof(text));
	const char *value = length > 0 ? variable(text, (size_t)length, "container") : NULL;

	if (value && *value)
		sy_add_evidence(container, 4, manager_name(value),
				"/proc/1/environ container=", value);
}

/* Weak: sbatch carries the submitter's environment to a node where there is no container. */
static void examine_own_environ(int root, struct sy_layer *container)
{
	static const struct word_name variables[] = {
	    {"APPTAINER_CONTAINER", "apptainer"},
	    {"SINGULARITY_CONTAINER", "apptainer"},
	    {"KUBERNETES_SERVICE_HOST", "kubernetes"},
	    {"CH_RUNNING", "charliecloud"},
	    {"SHIFTER_RUNTIME", "shifter"},
	};
	char text[32768];
	ssize_t length = sy_read_at(root, "/proc/self/environ", text, sizeof(text));

	for (size_t i = 0; i < COUNT(variables) && length > 0; i++)
		if (variable(text, (size_t)length, variables[i].word))
			sy_add_evidence(container, 1, variables[i].name, "/proc/self/environ",
					variables[i].word);
}

struct marker_file {
	const char *path;
	const char *name;
	int weight;
};

static void examine_marker_files(int root, struct sy_layer *container)
{
	static const struct marker_file files[] = {
	    {"/.dockerenv", "docker", 2},
	    {"/.dockerinit", "docker", 2},
	    {"/run/.containerenv", "podman", 3},
	    {"/.singularity.d", "apptainer", 4},
	    {"/run/secrets/kubernetes.io", "kubernetes", 3},
	    {"/var/run/secrets/kubernetes.io", "kubernetes", 3},
	    {"/dev/lxd/sock", "lxc", 3},
	    {"/dev/.lxc-boot-id", "lxc", 3},
	    {"/WEIRD_AL_YANKOVIC", "charliecloud", 2},
	};

	for (size_t i = 0; i < COUNT(files); i++)
		if (sy_exists_at(root, files[i].path))
			sy_add_evidence(container, files[i].weight, files[i].name, files[i].path,
					"there");
}

/* Inside a container OpenVZ shows /proc/vz but not /proc/bc, which its host has too. */
static void examine_openvz(int root, struct sy_layer *container)
{
	if (sy_exists_at(root, "/proc/vz") && !sy_exists_at(root, "/proc/bc"))
		sy_add_evidence(container, 4, "openvz", "/proc/vz", "there, and no /proc/bc");
	else if (sy_exists_at(root, "/proc/user_beancounters") && !sy_exists_at(root, "/proc/bc"))
		sy_add_evidence(container, 3, "openvz", "/proc/user_beancounters",
				"there, and no /proc/bc");
}

/* Linux-VServer: a context number other than 0 (older patches called it s_context). */
static void examine_vserver(int root, struct sy_layer *container)
{
	static const char *const keys[] = {"\nVxID:", "\ns_context:"};
	char text[4096];

	if (sy_read_at(root, "/proc/self/status", text, sizeof(text)) < 0)
		return;
	for (size_t i = 0; i < COUNT(keys); i++) {
		const char *at = strstr(text, keys[i]);
		long context = at ? strtol(at + strlen(keys[i]), NULL, 10) : 0;
		char shown[40];

		(void)snprintf(shown, sizeof(shown), "%s %ld", keys[i] + 1, context);
		if (context != 0)
			sy_add_evidence(container, 4, "linux-vserver", "/proc/self/status", shown);
	}
}

/* WSL 1 has no Linux kernel, WSL 2 one in a Hyper-V guest: systemd calls both a container. */
static void examine_wsl(int root, struct sy_layer *container)
{
	char text[256];

	if (sy_read_line_at(root, "/proc/sys/kernel/osrelease", text, sizeof(text)) >= 0 &&
	    (strstr(text, "Microsoft") || strstr(text, "WSL")))
		sy_add_evidence(container, 8, "wsl", "/proc/sys/kernel/osrelease", text);
	else if (sy_read_line_at(root, "/proc/version", text, sizeof(text)) >= 0 &&
		 strstr(text, "Microsoft@Microsoft.com"))
		sy_add_evidence(container, 8, "wsl", "/proc/version", text);
}

/* The part of a cgroup path that names a runtime, as its cgroup driver writes it. */
static const struct word_name cgroup_parts[] = {
    {"/docker/", "docker"},
    {"/docker-", "docker"},
    {"/libpod-", "podman"},
    {"/libpod_parent", "podman"},
    {"/crio-", "cri-o"},
    {"cri-containerd", "containerd"},
    {"/containerd-", "containerd"},
    {"kubepods", "kubernetes"},
    {"/lxc.payload", "lxc"},
    {"/lxc/", "lxc"},
    {"/machine-lxc", "lxc-libvirt"},
    {".libvirt-lxc", "lxc-libvirt"},
    {"/machine-rkt", "rkt"},
    {"/apptainer-", "apptainer"},
    {"/singularity-", "apptainer"},
};

/* One witness a file, however many controllers repeat it. */
static bool examine_cgroup(int root, struct sy_layer *container, const char *path)
{
	char text[8192], *rest = text, *line;

	if (sy_read_at(root, path, text, sizeof(text)) < 0)
		return false;
	while ((line = strsep(&rest, "\n")))
		for (size_t i = 0; i < COUNT(cgroup_parts); i++)
			if (strstr(line, cgroup_parts[i].word)) {
				sy_add_evidence(container, 3, cgroup_parts[i].name, path, line);
				return true;
			}
	return false;
}

static void examine_cgroups(int root, struct sy_layer *container)
{
	static const char scope[] = "0::/init.scope";
	char text[4096];

	if (examine_cgroup(root, container, "/proc/1/cgroup") ||
	    examine_cgroup(root, container, "/proc/self/cgroup"))
		return;
	/* In a cgroup namespace "/" shows nothing; systemd's scope shows that PID 1 is one. */
	if (sy_read_line_at(root, "/proc/1/cgroup", text, sizeof(text)) > 0 &&
	    !strcmp(text, scope) && sy_exists_at(root, "/proc/2"))
		sy_add_evidence(container, 1, "none", "/proc/1/cgroup", text);
}

struct initial_namespace {
	const char *path;
	const char *inode; /* include/linux/proc_ns.h: fixed numbers of the first ones */
	int weight_initial;
	int weight_own;
};

/* A process in the machine's first PID namespace is in no Docker, LXC or nspawn container, though
 * it may be in Apptainer's; a user namespace of its own is a hint only, a sandbox has it too. */
static void examine_namespaces(int root, struct sy_layer *container)
{
	static const struct initial_namespace namespaces[] = {
	    {"/proc/self/ns/pid", "pid:[4026531836]", 3, 3},
	    {"/proc/self/ns/cgroup", "cgroup:[4026531835]", 0, 1},
	    {"/proc/self/ns/user", "user:[4026531837]", 0, 1},
	    {"/proc/self/ns/ipc", "ipc:[4026531839]", 0, 1},
	};
	char value[64];

	for (size_t i = 0; i < COUNT(namespaces); i++) {
		const struct initial_namespace *ns = &namespaces[i];
		bool initial;

		if (sy_link_at(root, ns->path, value, sizeof(value)) < 0)
			continue;
		initial = !strcmp(value, ns->inode);
		if (initial && ns->weight_initial)
			sy_add_evidence(container, ns->weight_initial, "none", ns->path, value);
		else if (!initial)
			sy_add_evidence(container, ns->weight_own, OTHER, ns->path, value);
	}
}

/* Without a check of the namespaces: PID 2 of a machine is kthreadd, and the scheduler of kernels
 * before 4.15 reported PID 1's number outside its namespace. */
static void examine_pids(int root, struct sy_layer *container)
{
	char text[128];
	const char *number;

	if (sy_read_line_at(root, "/proc/1/sched", text, sizeof(text)) > 0 &&
	    (number = strrchr(text, '(')) && strtol(number + 1, NULL, 10) > 1)
		sy_add_evidence(container, 3, OTHER, "/proc/1/sched", text);
	if (sy_link_at(root, "/proc/self/ns/pid", text, sizeof(text)) > 0)
		return;
	if (sy_read_line_at(root, "/proc/2/comm", text, sizeof(text)) > 0 &&
	    !strcmp(text, "kthreadd"))
		sy_add_evidence(container, 3, "none", "/proc/2/comm", text);
}

static const struct word_name overlay_folders[] = {
    {"/docker/", "docker"},
    {"/containers/storage/", "podman"},
    {"/io.containerd.snapshotter", "containerd"},
    {"/apptainer/", "apptainer"},
    {"/singularity/", "apptainer"},
    {"/lxc/", "lxc"},
};

/* One line of mountinfo for "/": ID PARENT DEVICE ROOT MOUNT_POINT OPTIONS [..] - TYPE SOURCE SUPER
 */
static void examine_root_line(struct sy_layer *container, const char *line)
{
	char folder[256], type[64], source[256], shown[400];
	const char *rest = strstr(line, " - ");

	if (!rest || sscanf(line, "%*s %*s %*s %255s", folder) != 1 ||
	    sscanf(rest + 3, "%63s %255s", type, source) != 2)
		return;
	(void)snprintf(shown, sizeof(shown), "/ is %s, %.80s of %.80s", type, folder, source);
	for (size_t i = 0; i < COUNT(overlay_folders); i++)
		if (strstr(rest, overlay_folders[i].word) ||
		    strstr(folder, overlay_folders[i].word)) {
			sy_add_evidence(container, 3, overlay_folders[i].name,
					"/proc/self/mountinfo", shown);
			return;
		}
	/* Diskless nodes and live systems have such a root too. */
	if (strstr(type, "overlay") || strstr(type, "squash") || !strcmp(type, "aufs"))
		sy_add_evidence(container, 1, OTHER, "/proc/self/mountinfo", shown);
	else if (!strcmp(folder, "/") && !strncmp(source, "/dev/", 5) &&
		 strncmp(source, "/dev/loop", 9) != 0)
		sy_add_evidence(container, 2, "none", "/proc/self/mountinfo", shown);
	else if (strcmp(folder, "/") != 0 && strcmp(type, "btrfs") != 0)
		sy_add_evidence(container, 1, OTHER, "/proc/self/mountinfo", shown);
}

/* Runtimes mount these from their own folders, whatever the root is made of. */
static void examine_file_line(struct sy_layer *container, const char *line)
{
	static const struct word_name folders[] = {
	    {"/docker/containers/", "docker"},
	    {"/userdata/hosts", "podman"},
	    {"/kubelet/pods/", "kubernetes"},
	};
	char folder[256], shown[120];

	if (sscanf(line, "%*s %*s %*s %255s", folder) != 1)
		return;
	(void)snprintf(shown, sizeof(shown), "/etc/hosts is %.100s", folder);
	for (size_t i = 0; i < COUNT(folders); i++)
		if (strstr(folder, folders[i].word))
			sy_add_evidence(container, 3, folders[i].name, "/proc/self/mountinfo",
					shown);
}

/* Mounts may be stacked on "/": the last one counts. */
static void examine_mounts(int root, struct sy_layer *container)
{
	cleanup_free char *text = sy_read_all_at(root, "/proc/self/mountinfo", 1 << 20);
	char *rest = text, *line;
	const char *root_line = NULL;

	while (rest && (line = strsep(&rest, "\n"))) {
		char point[16];

		if (sscanf(line, "%*s %*s %*s %*s %15s", point) != 1)
			continue;
		if (!strcmp(point, "/"))
			root_line = line;
		if (!strcmp(point, "/etc/hosts"))
			examine_file_line(container, line);
		/* On an LXC host it is mounted on /var/lib/lxcfs only. */
		if (!strcmp(point, "/proc/meminfo") && strstr(line, " - fuse.lxcfs "))
			sy_add_evidence(container, 4, "lxc", "/proc/self/mountinfo",
					"lxcfs on /proc/meminfo");
	}
	if (root_line)
		examine_root_line(container, root_line);
}

void sy_detect_container(int root, struct sy_layer *container)
{
	examine_manager_files(root, container);
	examine_pid1_environ(root, container);
	examine_own_environ(root, container);
	examine_marker_files(root, container);
	examine_openvz(root, container);
	examine_vserver(root, container);
	examine_wsl(root, container);
	examine_cgroups(root, container);
	examine_namespaces(root, container);
	examine_pids(root, container);
	examine_mounts(root, container);
}
