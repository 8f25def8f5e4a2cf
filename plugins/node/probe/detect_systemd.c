#include "probe/detect_systemd.h"

#include "base/exec.h"

#include <stdio.h>
#include <string.h>

#define TIME_LIMIT_MS 1000

/* Names as they live in this program; what is not among them is told as "other". */
static const char *const vm_names[] = {
    "qemu",    "kvm",	"amazon", "zvm",    "vmware",	 "microsoft", "oracle",
    "powervm", "xen",	"bochs",  "uml",    "parallels", "bhyve",     "qnx",
    "acrn",    "apple", "sre",	  "google", "none",
};

static const char *const container_names[] = {
    "openvz", "lxc", "lxc-libvirt", "systemd-nspawn", "docker", "podman",
    "rkt",    "wsl", "proot",	    "pouch",	      "none",
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *known(const char *const *names, size_t count, const char *name,
			 const char *other)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return names[i];
	return other;
}

/* Its one line; false: it is not here, or has not answered in time. */
static bool ask(const char *layer, char *answer, size_t size)
{
	const char *const argv[] = {"/usr/bin/systemd-detect-virt", layer, NULL};
	cleanup_output struct sy_output output = {0};

	if (sy_run_within(TIME_LIMIT_MS, argv, NULL, &output, NULL) < 0)
		return false;
	/* Its exit code says whether there is any: "none" is an answer, too. */
	return snprintf(answer, size, "%.*s", (int)strcspn(output.out, "\n"), output.out) > 0;
}

void sy_ask_systemd(struct sy_layer *vm, struct sy_layer *container)
{
	char answer[64];

	if (ask("--vm", answer, sizeof(answer)))
		sy_witness(vm, 2, known(vm_names, COUNT(vm_names), answer, "vm-other"),
			   "systemd-detect-virt --vm", answer);
	/* It believes /.dockerenv at once: it must not make one witness of it into two. */
	if (ask("--container", answer, sizeof(answer)))
		sy_witness(
		    container, 1,
		    known(container_names, COUNT(container_names), answer, "container-other"),
		    "systemd-detect-virt --container", answer);
}
