/* Mounted file systems of the probe's document: /proc/self/mountinfo, as proc(5) describes it. */
#include "probe/probe.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>

#define LIMIT_BYTES (4 << 20)

/* Those through which the kernel shows itself: no job keeps data there. */
static const char *const internal_types[] = {
    "proc",	  "sysfs",	 "cgroup", "cgroup2",	 "devtmpfs",  "devpts",	    "mqueue",
    "debugfs",	  "tracefs",	 "pstore", "securityfs", "bpf",	      "configfs",   "fusectl",
    "autofs",	  "binfmt_misc", "nsfs",   "efivarfs",	 "selinuxfs", "rpc_pipefs", "nfsd",
    "fuse.lxcfs", "hugetlbfs",	 "pipefs", "sockfs",	 "resctrl",   "binder",	    "xenfs",
};

/* Small tmpfs and ramfs mounts of systemd and of container runtimes. */
static const char *const internal_mounts[] = {"/proc/", "/sys/", "/run/credentials/"};

void sy_unescape_mount(char *text)
{
	char *to = text;

	while (*text) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*to++ =
			    (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 | (text[3] - '0'));
			text += 4;
		} else {
			*to++ = *text++;
		}
	}
	*to = '\0';
}

struct mount {
	char *mount_point;
	char *options;
	char *type;
	char *source;
	char *super_options;
};

/* ID PARENT DEVICE ROOT MOUNT_POINT OPTIONS [OPTIONAL…] - TYPE SOURCE SUPER_OPTIONS */
static bool split_mount(char *line, struct mount *mount)
{
	char *rest = strstr(line, " - "), *field = NULL;

	if (!rest)
		return false;
	*rest = '\0';
	rest += 3;
	for (int i = 1; i <= 6; i++) {
		field = strsep(&line, " ");
		if (!field)
			return false;
		if (i == 5)
			mount->mount_point = field;
	}
	mount->options = field;
	mount->type = strsep(&rest, " ");
	mount->source = strsep(&rest, " ");
	mount->super_options = rest ? rest : (char *)"";
	return mount->source != NULL;
}

static bool is_internal(const struct mount *mount)
{
	for (size_t i = 0; i < sizeof(internal_types) / sizeof(internal_types[0]); i++)
		if (!strcmp(mount->type, internal_types[i]))
			return true;
	for (size_t i = 0; i < sizeof(internal_mounts) / sizeof(internal_mounts[0]); i++)
		if (!strncmp(mount->mount_point, internal_mounts[i], strlen(internal_mounts[i])))
			return true;
	return false;
}

static bool has_option(const char *options, const char *option, size_t length)
{
	for (const char *at = options; *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && !strncmp(at, option, length))
			return true;
	return false;
}

/* The mount's options, then further ones of the file system: those of NFS and Lustre are in the
 * second list. A read-only mount of a writable file system is "ro". */
static char *join_options(const struct mount *mount)
{
	size_t size = strlen(mount->options) + strlen(mount->super_options) + 2;
	char *joined = malloc(size);
	const char *at = mount->super_options;

	if (!joined)
		return NULL;
	strcpy(joined, mount->options);
	while (*at) {
		size_t length = strcspn(at, ",");

		if (length && !has_option(mount->options, at, length) &&
		    !(length == 2 && (!strncmp(at, "rw", 2) || !strncmp(at, "ro", 2)))) {
			if (*joined)
				strcat(joined, ",");
			strncat(joined, at, length);
		}
		at += length + (at[length] == ',');
	}
	return joined;
}

static void append_mount(struct sy_document *document, json_t *list, const struct mount *mount)
{
	cleanup_free char *options = join_options(mount);
	json_t *entry = json_object();

	sy_unescape_mount(mount->mount_point);
	sy_unescape_mount(mount->source);
	if (!options ||
	    json_object_set_new(entry, "mount_point", sy_json_text(mount->mount_point)) ||
	    json_object_set_new(entry, "type", sy_json_text(mount->type)) ||
	    json_object_set_new(entry, "source", sy_json_text(mount->source)) ||
	    json_object_set_new(entry, "options", sy_json_text(options)) ||
	    json_array_append(list, entry))
		document->failed = true;
	json_decref(entry);
}

void sy_probe_filesystems(int root, struct sy_document *document)
{
	cleanup_free char *text = sy_read_all_at(root, "/proc/self/mountinfo", LIMIT_BYTES);
	json_t *list = json_array();
	char *rest = text, *line;
	int odd = 0;

	if (!text)
		sy_doc_put_reason(document, "filesystems", "/proc/self/mountinfo: %s",
				  strerror(errno));
	while (rest && (line = strsep(&rest, "\n"))) {
		struct mount mount = {0};

		if (!*line)
			continue;
		if (!split_mount(line, &mount))
			odd++;
		else if (!is_internal(&mount))
			append_mount(document, list, &mount);
	}
	if (odd)
		sy_doc_put_reason(document, "filesystems",
				  "%d lines of /proc/self/mountinfo are not understood", odd);
	sy_doc_put(document, "filesystems", list);
}
