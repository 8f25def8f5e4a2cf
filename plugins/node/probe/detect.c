/* The three layers together, and the node type that follows from them. */
#include "probe/detect.h"

#include "base/file.h"
#include "probe/detect_container.h"
#include "probe/detect_dmi.h"
#include "probe/detect_systemd.h"
#include "probe/detect_vm.h"

#include <stdio.h>
#include <string.h>

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

static bool is(const struct sy_layer *layer, const char *name)
{
	return layer->name && !strcmp(layer->name, name);
}

static const char *find_node_type(const struct sy_virtualization *result)
{
	if (!result->container.name)
		return NULL;
	if (!is(&result->container, "none"))
		return "container";
	if (!result->vm.name)
		return NULL;
	return is(&result->vm, "none") ? "physical" : "virtual";
}

void sy_detect(int root, bool ask_others, struct sy_virtualization *result)
{
	memset(result, 0, sizeof(*result));
	sy_detect_vm(root, &result->vm, &result->detail);
	sy_detect_dmi(root, &result->vm, &result->cloud);
	sy_detect_cloud(root, &result->cloud);
	sy_detect_container(root, &result->container);
	if (ask_others && sy_root_is_machine(root))
		sy_ask_systemd(&result->vm, &result->container);
	sy_decide(&result->vm, "vm-other", vm_refinements);
	sy_decide(&result->container, "container-other", container_refinements);
	sy_decide(&result->cloud, "cloud-other", no_refinements);
	name_monitor(result);
	if (!is(&result->vm, "xen") && !is(&result->vm, "kvm") && !is(&result->vm, "none"))
		result->detail = NULL;
	result->node_type = find_node_type(result);
}
