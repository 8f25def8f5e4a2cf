/* Firmware, operating system, C library and kernel modules of the probe's document: what changes on
 * a day of maintenance, and may make a later run slower. */
#include "probe/probe.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

/* Modules that sites install from elsewhere and that carry a version of their own: GPUs, clients of
 * file systems, networks. All others change with the kernel's release. */
static const char *const module_names[] = {
    "nvidia", "amdgpu", "lustre", "beegfs", "mmfs26", "mlx5_core", "xpmem", "knem",
};

/* PRETTY_NAME of os-release(5), which a shell could read: with or without quotes. */
static void put_os(int root, struct sy_document *document)
{
	static const char key[] = "PRETTY_NAME=", file[] = "/etc/os-release";
	cleanup_free char *text = sy_read_all_at(root, file, 65536);
	char *rest = text, *line, *end;

	while (rest && (line = strsep(&rest, "\n"))) {
		if (strncmp(line, key, sizeof(key) - 1) != 0)
			continue;
		line += sizeof(key) - 1;
		line += *line == '"' || *line == '\'';
		end = line + strlen(line);
		if (end > line && (end[-1] == '"' || end[-1] == '\''))
			end[-1] = '\0';
		if (*line) {
			sy_doc_put_text(document, "os.name", line);
			return;
		}
	}
	sy_doc_put_null(document, "os.name", "%s has no PRETTY_NAME, or cannot be read", file);
}

/* The library that this program runs with is the node's. */
static void put_libc(int root, struct sy_document *document)
{
	char version[64];
	size_t length = 0;

	if (!sy_root_is_machine(root)) {
		sy_doc_put_null(document, "libc.version", "read from a recorded tree");
		return;
	}
#ifdef _CS_GNU_LIBC_VERSION
	length = confstr(_CS_GNU_LIBC_VERSION, version, sizeof(version));
#endif
	if (length)
		sy_doc_put_text(document, "libc.version", version);
	else
		sy_doc_put_null(document, "libc.version", "confstr(3) names none: not glibc");
}

/* Of those that are loaded. Lustre has a file of its own, too. */
static void put_module(int root, struct sy_document *document, const char *name)
{
	char path[64], file[96], line[256];

	(void)snprintf(file, sizeof(file), "/sys/module/%s", name);
	if (!sy_exists_at(root, file))
		return;
	(void)snprintf(path, sizeof(path), "modules.%s", name);
	(void)snprintf(file, sizeof(file), "/sys/module/%s/version", name);
	if (sy_read_line_at(root, file, line, sizeof(line)) > 0 ||
	    (!strcmp(name, "lustre") &&
	     sy_read_line_at(root, "/sys/fs/lustre/version", line, sizeof(line)) > 0))
		sy_doc_put_text(document, path, line);
	else
		sy_doc_put_null(document, path, "it declares no version: see kernel.release");
}

static void put_modules(int root, struct sy_document *document)
{
	if (!sy_exists_at(root, "/sys/module")) {
		sy_doc_put_null(document, "modules", "/sys/module is absent");
		return;
	}
	sy_doc_put(document, "modules", json_object());
	for (size_t i = 0; i < sizeof(module_names) / sizeof(module_names[0]); i++)
		put_module(root, document, module_names[i]);
}

void sy_probe_platform(int root, struct sy_document *document)
{
	sy_doc_put_line(document, "bios.version", root, "/sys/class/dmi/id/bios_version");
	sy_doc_put_line(document, "bios.date", root, "/sys/class/dmi/id/bios_date");
	put_os(root, document);
	put_libc(root, document);
	put_modules(root, document);
}
