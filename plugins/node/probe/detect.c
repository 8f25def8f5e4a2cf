#include "probe/detect.h"

#include "base/exec.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

#define TIME_LIMIT_MS 1000 /* of systemd-detect-virt, for each layer */

void sy_add_witness(struct sy_layer *layer, int weight, const char *says, const char *source,
		    const char *value)
{
	struct sy_evidence *evidence;

	if (layer->count == SY_EVIDENCE_MAX)
		return;
	evidence = &layer->evidence[layer->count++];
	evidence->weight = weight;
	evidence->says = says;
	(void)snprintf(evidence->source, sizeof(evidence->source), "%s", source);
	(void)snprintf(evidence->value, sizeof(evidence->value), "%s", value);
}

static bool is_kind_of(const struct sy_refinement *refinements, const char *special,
		       const char *general)
{
	for (; refinements->general; refinements++)
		if (!strcmp(refinements->special, special) &&
		    !strcmp(refinements->general, general))
			return true;
	return false;
}

static int own_weight(const struct sy_layer *layer, const char *name)
{
	int weight = 0;

	for (size_t i = 0; i < layer->count; i++)
		if (!strcmp(layer->evidence[i].says, name))
			weight += layer->evidence[i].weight;
	return weight;
}

/* All that supports a name: itself, what it is a kind of, and "one of them". */
static int support(const struct sy_layer *layer, const char *name, const char *other,
		   const struct sy_refinement *refinements)
{
	int weight = 0;

	for (size_t i = 0; i < layer->count; i++) {
		const char *says = layer->evidence[i].says;

		if (!strcmp(says, name) || !strcmp(says, other) ||
		    is_kind_of(refinements, name, says))
			weight += layer->evidence[i].weight;
	}
	return weight;
}

/* The name with the most support; among a general and a special one, the special. */
static const char *best_name(const struct sy_layer *layer, const char *other,
			     const struct sy_refinement *refinements)
{
	const char *best = NULL;

	for (size_t i = 0; i < layer->count; i++) {
		const char *says = layer->evidence[i].says;
		int more;

		if (!strcmp(says, "none") || !strcmp(says, other))
			continue;
		more = best ? support(layer, says, other, refinements) -
				  support(layer, best, other, refinements)
			    : 1;
		if (more > 0 || (more == 0 && is_kind_of(refinements, says, best)))
			best = says;
	}
	return best;
}

/* What speaks for another name than this one, and is not implied by it. */
static int contradiction(const struct sy_layer *layer, const char *name, const char *other,
			 const struct sy_refinement *refinements)
{
	int all = 0;

	for (size_t i = 0; i < layer->count; i++)
		all += layer->evidence[i].weight;
	return all - support(layer, name, other, refinements);
}

static enum sy_confidence judge(int pro, int contra)
{
	if (pro >= 4 && contra == 0)
		return SY_CERTAIN;
	if (pro >= 3 && pro >= contra + 2)
		return SY_LIKELY;
	return SY_WEAK;
}

void sy_decide_layer(struct sy_layer *layer, const char *other,
		     const struct sy_refinement *refinements)
{
	const char *best = best_name(layer, other, refinements);
	int against = own_weight(layer, "none");
	int total = 0;

	for (size_t i = 0; i < layer->count; i++)
		total += layer->evidence[i].weight;
	layer->name = NULL;
	layer->confidence = SY_WEAK;
	if (total == 0)
		return;
	if (total - against <= against) {
		layer->name = "none";
		layer->confidence = judge(against, total - against);
		return;
	}
	/* There is one; but a single stale witness does not give it its name against others. */
	if (best && against > 0 &&
	    support(layer, best, other, refinements) - own_weight(layer, other) < 3)
		best = NULL;
	layer->name = best ? best : other;
	layer->confidence =
	    judge(best ? support(layer, best, other, refinements) : own_weight(layer, other),
		  contradiction(layer, layer->name, other, refinements));
}

const char *sy_confidence_name(enum sy_confidence confidence)
{
	static const char *const names[] = {"weak", "likely", "certain"};

	return names[confidence];
}

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

/* systemd-detect-virt as one more witness. */
static void ask_systemd(struct sy_layer *vm, struct sy_layer *container)
{
	char answer[64];

	if (ask("--vm", answer, sizeof(answer)))
		sy_add_witness(vm, 2, known(vm_names, COUNT(vm_names), answer, "vm-other"),
			       "systemd-detect-virt --vm", answer);
	/* It believes /.dockerenv at once: it must not make one witness of it into two. */
	if (ask("--container", answer, sizeof(answer)))
		sy_add_witness(
		    container, 1,
		    known(container_names, COUNT(container_names), answer, "container-other"),
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
		ask_systemd(&result->vm, &result->container);
	sy_decide_layer(&result->vm, "vm-other", vm_refinements);
	sy_decide_layer(&result->container, "container-other", container_refinements);
	sy_decide_layer(&result->cloud, "cloud-other", no_refinements);
	name_monitor(result);
	if (!is(&result->vm, "xen") && !is(&result->vm, "kvm") && !is(&result->vm, "none"))
		result->detail = NULL;
	result->node_type = find_node_type(result);
}
