#include "probe/detect.h"

#include "base/exec.h"
#include "base/file.h"
#include "probe/detectors.h"

#include <stdio.h>
#include <string.h>

#define TIME_LIMIT_MS 1000 /* of systemd-detect-virt, for each layer */

/* Names as they live in this program; other names are reported as "other". */
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

static const char *find_name(const char *const *names, size_t count, const char *name,
			     const char *other)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return names[i];
	return other;
}

/* The output line; false: not installed, or no answer in time. */
static bool run_detect_virt(const char *layer, char *answer, size_t size)
{
	const char *const argv[] = {"/usr/bin/systemd-detect-virt", layer, NULL};
	cleanup_output struct sy_output output = {0};

	if (sy_run_within(TIME_LIMIT_MS, argv, NULL, &output, NULL) < 0)
		return false;
	/* Its exit code shows whether there is any: "none" is an answer, too. */
	return snprintf(answer, size, "%.*s", (int)strcspn(output.out, "\n"), output.out) > 0;
}

/* systemd-detect-virt is one more piece of evidence. */
static void query_systemd(struct sy_layer *vm, struct sy_layer *container)
{
	char answer[64];

	if (run_detect_virt("--vm", answer, sizeof(answer)))
		sy_add_evidence(vm, 2, find_name(vm_names, COUNT(vm_names), answer, "vm-other"),
				"systemd-detect-virt --vm", answer);
	/* It believes /.dockerenv at once: it must not make one witness of it into two. */
	if (run_detect_virt("--container", answer, sizeof(answer)))
		sy_add_evidence(
		    container, 1,
		    find_name(container_names, COUNT(container_names), answer, "container-other"),
		    "systemd-detect-virt --container", answer);
}

/* KVM is QEMU's accelerator; clouds and Firecracker build on KVM; UML's host may be any of them. */
static const struct sy_refinement vm_refinements[] = {
    {"qemu", "kvm"},	    {"bochs", "qemu"},	    {"bochs", "kvm"},
    {"qemu", "amazon"},	    {"kvm", "amazon"},	    {"qemu", "google"},
    {"kvm", "google"},	    {"kvm", "firecracker"}, {"kvm", "cloud-hypervisor"},
    {"kvm", "oracle"},	    {"kvm", "parallels"},   {"kvm", "uml"},
    {"firecracker", "uml"}, {"xen", "uml"},	    {"vmware", "uml"},
    {"oracle", "uml"},	    {"microsoft", "uml"},   {"qemu", "uml"},
    {"amazon", "uml"},	    {"google", "uml"},	    {NULL, NULL},
};

/* Kubernetes runs containerd or CRI-O, Docker runs containerd; CRI-O leaves Podman's file. */
static const struct sy_refinement container_refinements[] = {
    {"kubernetes", "containerd"}, {"kubernetes", "docker"},
    {"kubernetes", "cri-o"},	  {"kubernetes", "podman"},
    {"containerd", "docker"},	  {"podman", "cri-o"},
    {"lxc", "lxc-libvirt"},	  {NULL, NULL},
};

static const struct sy_refinement no_refinements[] = {{NULL, NULL}};

/* Firecracker is KVM to systemd-detect-virt; so is Cloud Hypervisor. */
static void name_monitor(struct sy_virtualization *result)
{
	static const char *const monitors[] = {"firecracker", "cloud-hypervisor"};

	for (size_t i = 0; i < sizeof(monitors) / sizeof(monitors[0]); i++)
		if (result->vm.name && !strcmp(result->vm.name, monitors[i])) {
			result->vm.name = "kvm";
			result->detail = monitors[i];
		}
}

static bool has_name(const struct sy_layer *layer, const char *name)
{
	return layer->name && !strcmp(layer->name, name);
}

static const char *find_node_type(const struct sy_virtualization *result)
{
	if (!result->container.name)
		return NULL;
	if (!has_name(&result->container, "none"))
		return "container";
	if (!result->vm.name)
		return NULL;
	return has_name(&result->vm, "none") ? "physical" : "virtual";
}

void sy_detect(int root, bool run_programs, struct sy_virtualization *result)
{
	memset(result, 0, sizeof(*result));
	sy_detect_vm(root, &result->vm, &result->detail);
	sy_detect_dmi(root, &result->vm, &result->cloud);
	sy_detect_cloud(root, &result->cloud);
	sy_detect_container(root, &result->container);
	if (run_programs && sy_root_is_machine(root))
		query_systemd(&result->vm, &result->container);
	sy_decide_layer(&result->vm, "vm-other", vm_refinements);
	sy_decide_layer(&result->container, "container-other", container_refinements);
	sy_decide_layer(&result->cloud, "cloud-other", no_refinements);
	name_monitor(result);
	if (!has_name(&result->vm, "xen") && !has_name(&result->vm, "kvm") &&
	    !has_name(&result->vm, "none"))
		result->detail = NULL;
	result->node_type = find_node_type(result);
}
