/* Firmware tables (DMI), for the machine layer and for the cloud product. */
#include "probe/detectors.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

#define DMI "/sys/class/dmi/id/"

enum match { PREFIX, INSIDE };

/* `file` NULL: any but the chassis files; `vm` or `cloud` NULL: no evidence about that. */
struct rule {
	const char *file;
	enum match match;
	const char *text;
	const char *vm;
	const char *cloud;
};

static const char *const files[] = {
    "sys_vendor",      "product_name", "bios_vendor",	    "board_vendor",
    "product_version", "bios_version", "chassis_asset_tag", "chassis_vendor",
};

static const struct rule rules[] = {
    /* machine layer */
    {NULL, PREFIX, "QEMU", "qemu", NULL},
    {NULL, PREFIX, "KVM", "kvm", NULL},
    {NULL, PREFIX, "VMware", "vmware", NULL},
    {NULL, PREFIX, "VMW", "vmware", NULL},
    {NULL, PREFIX, "innotek GmbH", "oracle", NULL},
    {"product_name", PREFIX, "VirtualBox", "oracle", NULL},
    {"bios_version", PREFIX, "VirtualBox", "oracle", NULL},
    {NULL, PREFIX, "Xen", "xen", NULL},
    {NULL, PREFIX, "Bochs", "bochs", NULL},
    {NULL, PREFIX, "Parallels", "parallels", NULL},
    {NULL, PREFIX, "BHYVE", "bhyve", NULL},
    {"product_name", PREFIX, "Virtual Machine", "microsoft", NULL},
    {"bios_vendor", PREFIX, "Hyper-V", "microsoft", NULL},
    {"product_version", PREFIX, "Hyper-V", "microsoft", NULL},
    {NULL, PREFIX, "Apple Virtualization", "apple", NULL},
    {NULL, PREFIX, "Nutanix", "kvm", NULL},
    {"product_name", PREFIX, "RHEV Hypervisor", "kvm", NULL},
    {"product_name", PREFIX, "oVirt", "kvm", NULL},
    {"product_name", INSIDE, "Cloud Hypervisor", "cloud-hypervisor", NULL},
    /* cloud products, some of which name the machine layer too */
    {"sys_vendor", PREFIX, "OpenStack Foundation", "kvm", "openstack"},
    {"product_name", PREFIX, "OpenStack", "kvm", "openstack"},
    {"chassis_asset_tag", PREFIX, "OpenTelekomCloud", NULL, "openstack"},
    {"sys_vendor", PREFIX, "Amazon EC2", "amazon", "ec2"},
    {"bios_version", INSIDE, ".amazon", NULL, "ec2"},
    {"chassis_asset_tag", PREFIX, "Amazon EC2", NULL, "ec2"},
    {"sys_vendor", PREFIX, "Google", "google", "gce"},
    {"product_name", PREFIX, "Google Compute Engine", "google", "gce"},
    /* "MSFT AZURE VM" in ASCII codes */
    {"chassis_asset_tag", PREFIX, "7783-7084-3265-9085-8269-3286-77", "microsoft", "azure"},
    {"chassis_asset_tag", PREFIX, "OracleCloud.com", NULL, "oci"},
    {"sys_vendor", PREFIX, "Alibaba Cloud", "kvm", "aliyun"},
    {"sys_vendor", PREFIX, "Tencent Cloud", "kvm", "tencent"},
    {"sys_vendor", PREFIX, "DigitalOcean", "kvm", "digitalocean"},
    {"sys_vendor", PREFIX, "Hetzner", NULL, "hetzner"},
    {"sys_vendor", PREFIX, "Scaleway", NULL, "scaleway"},
    {"sys_vendor", PREFIX, "Exoscale", "kvm", "exoscale"},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static bool applies(const struct rule *rule, const char *file, const char *value)
{
	if (rule->file ? strcmp(rule->file, file) != 0 : !strncmp(file, "chassis", 7))
		return false;
	if (rule->match == PREFIX)
		return !strncmp(value, rule->text, strlen(rule->text));
	return strstr(value, rule->text) != NULL;
}

static bool examine_file(const char *file, const char *source, const char *value,
			 struct sy_layer *vm, struct sy_layer *cloud)
{
	bool known = false;

	for (size_t i = 0; i < COUNT(rules); i++) {
		if (!applies(&rules[i], file, value))
			continue;
		if (rules[i].vm)
			sy_add_evidence(vm, 3, rules[i].vm, source, value);
		if (rules[i].cloud)
			sy_add_evidence(cloud, 3, rules[i].cloud, source, value);
		known = true;
	}
	return known;
}

void sy_detect_dmi(int root, struct sy_layer *vm, struct sy_layer *cloud)
{
	char vendor[96] = "", value[96], source[64];
	size_t clouds = cloud->count;
	bool known = false;

	for (size_t i = 0; i < COUNT(files); i++) {
		(void)snprintf(source, sizeof(source), DMI "%s", files[i]);
		if (sy_read_line_at(root, source, value, sizeof(value)) <= 0)
			continue;
		if (i == 0)
			memcpy(vendor, value, sizeof(vendor));
		known |= examine_file(files[i], source, value, vm, cloud);
	}
	if (*vendor && cloud->count == clouds)
		sy_add_evidence(cloud, 2, "none", DMI "sys_vendor", vendor);
	if (*vendor && !known)
		sy_add_evidence(vm, 1, "none", DMI "sys_vendor", vendor);
}

/* What cloud-init found at boot, and what Xen's toolstack of EC2 puts in front of the UUID. */
void sy_detect_cloud(int root, struct sy_layer *cloud)
{
	static const struct {
		const char *id, *name;
	} ids[] = {
	    {"openstack", "openstack"},
	    {"aws", "ec2"},
	    {"gce", "gce"},
	    {"azure", "azure"},
	    {"oracle", "oci"},
	    {"aliyun", "aliyun"},
	    {"digitalocean", "digitalocean"},
	    {"hetzner", "hetzner"},
	    {"scaleway", "scaleway"},
	    {"exoscale", "exoscale"},
	};
	char value[64];

	if (sy_read_line_at(root, "/run/cloud-init/cloud-id", value, sizeof(value)) > 0)
		for (size_t i = 0; i < COUNT(ids); i++)
			if (!strcmp(ids[i].id, value))
				sy_add_evidence(cloud, 2, ids[i].name, "/run/cloud-init/cloud-id",
						value);
	if (sy_read_line_at(root, "/sys/hypervisor/uuid", value, sizeof(value)) > 0 &&
	    !strncmp(value, "ec2", 3))
		sy_add_evidence(cloud, 3, "ec2", "/sys/hypervisor/uuid", value);
}
