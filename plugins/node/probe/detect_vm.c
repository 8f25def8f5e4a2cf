/* The machine layer: what the hypervisor, the firmware and the kernel leave to be seen. */
#include "probe/detectors.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

struct word_name {
	const char *word;
	const char *name;
};

/* CPUID leaf 0x40000000, EBX ECX EDX. */
static const struct word_name signatures[] = {
    {"KVMKVMKVM", "kvm"},	   {"Linux KVM Hv", "kvm"},    {"TCGTCGTCGTCG", "qemu"},
    {"XenVMMXenVMM", "xen"},	   {"VMwareVMware", "vmware"}, {"Microsoft Hv", "microsoft"},
    {"bhyve bhyve ", "bhyve"},	   {"VBoxVBoxVBox", "oracle"}, {" lrpepyh  vr", "parallels"},
    {"prl hyperv  ", "parallels"}, {"QNXQVMBSQG", "qnx"},      {"ACRNACRNACRN", "acrn"},
    {"SRESRESRESRE", "sre"},	   {"Apple VZ", "apple"},
};

static const struct word_name clock_sources[] = {
    {"kvm-clock", "kvm"},
    {"hyperv_clocksource", "microsoft"},
    {"xen", "xen"},
};

static const struct word_name device_files[] = {
    {"/dev/vboxguest", "oracle"},
    {"/dev/prl_tg", "parallels"},
    {"/dev/hpilo", "none"},
    {"/dev/ipmi0", "none"},
};

static const struct word_name pci_drivers[] = {
    {"/sys/bus/pci/drivers/xen-platform-pci/bind", "xen"},
    {"/sys/bus/pci/drivers/vmw_pvscsi/bind", "vm-other"},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *look_up(const struct word_name *table, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(table[i].word, word))
			return table[i].name;
	return NULL;
}

#if defined(__x86_64__) || defined(__i386__)
static void read_leaf(unsigned int leaf, char signature[13])
{
	unsigned int eax, part[3];

	__cpuid(leaf, eax, part[0], part[1], part[2]);
	memcpy(signature, part, 12);
	signature[12] = '\0';
}

/* The hypervisor's signature; "" when bit 31 of leaf 1 is 0: none. With Hyper-V enlightenments
 * KVM and Xen report Hyper-V first and themselves 0x100 further. */
static bool read_cpuid(char signature[13])
{
	unsigned int eax, ebx, ecx, edx;

	signature[0] = '\0';
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
		return false;
	if (!(ecx & (1U << 31)))
		return true;
	read_leaf(0x40000000, signature);
	if (!strcmp(signature, "Microsoft Hv")) {
		char second[13];

		read_leaf(0x40000100, second);
		if (look_up(signatures, COUNT(signatures), second))
			strcpy(signature, second);
	}
	return true;
}
#else
static bool read_cpuid(char signature[13])
{
	signature[0] = '\0';
	return false;
}
#endif

/* CPUID is the machine's own; a recorded tree has its answer in a file. */
static void examine_cpuid(int root, struct sy_layer *vm)
{
	const char *source = "CPUID leaf 0x40000000";
	char signature[13], shown[40];
	const char *name;

	if (!sy_root_is_machine(root)) {
		source = "/.steelyard/cpuid-hypervisor";
		if (sy_read_line_at(root, source, signature, sizeof(signature)) < 0)
			return;
	} else if (!read_cpuid(signature)) {
		return;
	}
	if (!*signature) {
		sy_add_evidence(vm, 4, "none", source, "no hypervisor bit");
		return;
	}
	name = look_up(signatures, COUNT(signatures), signature);
	(void)snprintf(shown, sizeof(shown), "signature \"%s\"", signature);
	sy_add_evidence(vm, name ? 4 : 3, name ? name : "vm-other", source, shown);
}

static bool has_word(const char *line, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = line; (at = strstr(at, word)); at += length)
		if ((at == line || strchr(" \t", at[-1])) && strchr(" \t\n", at[length]))
			return true;
	return false;
}

/* /proc/cpuinfo of the first CPU: on x86 a flags line shows it; User Mode Linux has its name
 * there, next to the flags of its host's CPU. */
static void examine_cpuinfo(int root, struct sy_layer *vm)
{
	char text[8192];
	char *flags, *end;

	if (sy_read_at(root, "/proc/cpuinfo", text, sizeof(text)) < 0)
		return;
	if (strstr(text, "User Mode Linux"))
		sy_add_evidence(vm, 8, "uml", "/proc/cpuinfo", "vendor_id User Mode Linux");
	if (strstr(text, "QEMU Virtual CPU"))
		sy_add_evidence(vm, 2, "qemu", "/proc/cpuinfo", "model name QEMU Virtual CPU");
	flags = strstr(text, "\nflags");
	if (!flags)
		return;
	end = strchr(flags + 1, '\n');
	if (!end)
		return;
	*end = '\0';
	if (has_word(flags, "hypervisor"))
		sy_add_evidence(vm, 2, "vm-other", "/proc/cpuinfo", "flag hypervisor");
	else
		sy_add_evidence(vm, 3, "none", "/proc/cpuinfo", "flags without hypervisor");
}

static void examine_device_tree(int root, struct sy_layer *vm)
{
	char text[128];

	if (sy_read_at(root, "/proc/device-tree/hypervisor/compatible", text, sizeof(text)) >= 0) {
		const char *name = strstr(text, "kvm")	    ? "kvm"
				   : strstr(text, "xen")    ? "xen"
				   : strstr(text, "vmware") ? "vmware"
							    : "vm-other";

		sy_add_evidence(vm, 4, name, "/proc/device-tree/hypervisor/compatible", text);
	}
	if (sy_read_at(root, "/proc/device-tree/compatible", text, sizeof(text)) >= 0 &&
	    (strstr(text, "qemu,pseries") || strstr(text, "linux,dummy-virt")))
		sy_add_evidence(vm, 3, "qemu", "/proc/device-tree/compatible", text);
	if (sy_exists_at(root, "/proc/device-tree/ibm,partition-name") &&
	    sy_exists_at(root, "/proc/device-tree/hmc-managed?"))
		sy_add_evidence(vm, 4, "powervm", "/proc/device-tree/hmc-managed?", "there");
}

/* IBM Z: the lowest virtual machine is in the block "VM00". */
static void examine_sysinfo(int root, struct sy_layer *vm)
{
	char text[4096];
	const char *program;

	if (sy_read_at(root, "/proc/sysinfo", text, sizeof(text)) < 0)
		return;
	program = strstr(text, "VM00 Control Program:");
	if (program)
		sy_add_evidence(vm, 4, strstr(program, "z/VM") ? "zvm" : "kvm", "/proc/sysinfo",
				"VM00 Control Program");
	else
		sy_add_evidence(vm, 3, "none", "/proc/sysinfo", "no VM00: a logical partition");
}

/* Bit 11 of the features, XENFEAT_dom0, and "control_d" mark the domain that drives the hardware:
 * its processes run on the physical machine. */
static bool is_dom0(int root, char *source, size_t size, char *value, size_t value_size)
{
	static const char capabilities[] = "/proc/xen/capabilities";
	static const char features[] = "/sys/hypervisor/properties/features";

	(void)snprintf(source, size, "%s", capabilities);
	if (sy_read_line_at(root, capabilities, value, value_size) >= 0 &&
	    strstr(value, "control_d"))
		return true;
	(void)snprintf(source, size, "%s", features);
	return sy_read_line_at(root, features, value, value_size) >= 0 &&
	       (strtoull(value, NULL, 16) >> 11 & 1);
}

/* hvm, pv or pvh: guest_type since Linux 4.13, before it by the firmware, that only hvm has. */
static const char *xen_guest_type(int root)
{
	static const char *const types[] = {"hvm", "pvh", "pv"};
	char text[32];

	if (sy_read_line_at(root, "/sys/hypervisor/guest_type", text, sizeof(text)) >= 0) {
		for (size_t i = 0; i < COUNT(types); i++)
			if (!strcasecmp(text, types[i]))
				return types[i];
		return NULL;
	}
	if (sy_read_line_at(root, "/sys/class/dmi/id/product_name", text, sizeof(text)) >= 0)
		return strstr(text, "HVM domU") ? "hvm" : NULL;
	return sy_exists_at(root, "/proc/xen") ? "pv" : NULL;
}

static void examine_xen(int root, struct sy_layer *vm, const char **detail)
{
	char text[64], source[64];

	if (sy_read_line_at(root, "/sys/hypervisor/type", text, sizeof(text)) < 0 ||
	    strcmp(text, "xen") != 0) {
		if (!sy_exists_at(root, "/proc/xen/capabilities"))
			return;
		(void)snprintf(text, sizeof(text), "xen");
	}
	if (is_dom0(root, source, sizeof(source), text, sizeof(text))) {
		/* Outweighs what else speaks for Xen: hypervisor flag, signature, /sys/hypervisor.
		 */
		sy_add_evidence(vm, 20, "none", source, text);
		*detail = "dom0";
		return;
	}
	sy_add_evidence(vm, 4, "xen", "/sys/hypervisor/type, /proc/xen", text);
	*detail = xen_guest_type(root);
}

static void examine_clock_sources(int root, struct sy_layer *vm)
{
	static const char path[] =
	    "/sys/devices/system/clocksource/clocksource0/available_clocksource";
	char text[128];

	if (sy_read_line_at(root, path, text, sizeof(text)) < 0)
		return;
	for (size_t i = 0; i < COUNT(clock_sources); i++)
		if (has_word(text, clock_sources[i].word))
			sy_add_evidence(vm, 3, clock_sources[i].name, path, text);
}

static bool has_entries(int root, const char *folder)
{
	cleanup_names struct sy_names names = {0};

	return sy_list_at(root, folder, &names) == 0 && names.count > 0;
}

static void examine_devices(int root, struct sy_layer *vm)
{
	if (has_entries(root, "/sys/bus/vmbus/devices"))
		sy_add_evidence(vm, 3, "microsoft", "/sys/bus/vmbus/devices", "devices");
	if (has_entries(root, "/sys/bus/virtio/devices"))
		sy_add_evidence(vm, 1, "vm-other", "/sys/bus/virtio/devices", "devices");
	for (size_t i = 0; i < COUNT(device_files); i++)
		if (sy_exists_at(root, device_files[i].word))
			sy_add_evidence(vm, strcmp(device_files[i].name, "none") ? 2 : 1,
					device_files[i].name, device_files[i].word, "there");
	for (size_t i = 0; i < COUNT(pci_drivers); i++)
		if (sy_exists_at(root, pci_drivers[i].word))
			sy_add_evidence(vm, 1, pci_drivers[i].name, pci_drivers[i].word, "there");
}

/* Firecracker signs its ACPI tables; bytes 10 to 15 of a table are the OEM's name. Root only. */
static void examine_acpi(int root, struct sy_layer *vm)
{
	static const struct word_name oems[] = {
	    {"FIRECK", "firecracker"},	    {"BOCHS ", "qemu"},
	    {"VBOX  ", "oracle"},	    {"XEN   ", "xen"},
	    {"CLOUDH", "cloud-hypervisor"},
	};
	char table[64], oem[7];
	const char *name;

	if (sy_read_at(root, "/sys/firmware/acpi/tables/FACP", table, sizeof(table)) < 16)
		return;
	memcpy(oem, table + 10, 6);
	oem[6] = '\0';
	name = look_up(oems, COUNT(oems), oem);
	if (name)
		sy_add_evidence(vm, 4, name, "/sys/firmware/acpi/tables/FACP", oem);
}

/* What an ordinary user can see of it: no DMI at all, devices that only it gives a guest, and the
 * release of the kernels that are built for it. */
static void examine_firecracker(int root, struct sy_layer *vm)
{
	char text[2048];

	if (sy_read_line_at(root, "/proc/sys/kernel/osrelease", text, 128) >= 0 &&
	    strstr(text, "-fc-"))
		sy_add_evidence(vm, 1, "firecracker", "/proc/sys/kernel/osrelease", text);
	if (sy_exists_at(root, "/sys/bus/acpi/devices/AMZNC10C:00") &&
	    !sy_exists_at(root, "/sys/class/dmi/id"))
		sy_add_evidence(vm, 2, "firecracker", "/sys/bus/acpi/devices/AMZNC10C:00",
				"there, and no DMI");
	if (sy_read_line_at(root, "/proc/cmdline", text, sizeof(text)) >= 0 &&
	    strstr(text, "virtio_mmio.device=") && !sy_exists_at(root, "/sys/class/dmi/id"))
		sy_add_evidence(vm, 2, "firecracker", "/proc/cmdline",
				"virtio_mmio.device=, no DMI");
}

void sy_detect_vm(int root, struct sy_layer *vm, const char **detail)
{
	examine_cpuid(root, vm);
	examine_cpuinfo(root, vm);
	examine_device_tree(root, vm);
	examine_sysinfo(root, vm);
	examine_xen(root, vm, detail);
	examine_clock_sources(root, vm);
	examine_devices(root, vm);
	examine_acpi(root, vm);
	examine_firecracker(root, vm);
}
