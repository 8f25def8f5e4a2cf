// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A powercap class device for a virtual node: zones of a made-up processor under the kernel's own
 * /sys/class/powercap. Its package draws `idle_mw` and for each second of the node's CPU time
 * `busy_mw` more, its dram `dram_mw`, whatever runs. Joules of it are made up; the law is known.
 *
 * What has been counted since the module was loaded, its wraps undone, is told beside the zones:
 * /sys/module/steelyard_powercap/parameters/total_uj and dram_total_uj. */
#include <linux/kernel_stat.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/powercap.h>

static unsigned int idle_mw = 40000, busy_mw = 11000, dram_mw = 3000;
static unsigned int range_j = 100;
module_param(idle_mw, uint, 0444);
module_param(busy_mw, uint, 0444);
module_param(dram_mw, uint, 0444);
module_param(range_j, uint, 0444);

static struct powercap_control_type *type;
static struct powercap_zone package, dram;
static u64 loaded_ns, loaded_cpu_ns;

static u64 cpu_ns(void)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu) sum += kcpustat_cpu(cpu).cpustat[CPUTIME_USER] +
					  kcpustat_cpu(cpu).cpustat[CPUTIME_NICE] +
					  kcpustat_cpu(cpu).cpustat[CPUTIME_SYSTEM];
	return sum;
}

/* mW x ns are pJ. */
static u64 counted_uj(const struct powercap_zone *zone)
{
	u64 lived_us = div_u64(ktime_get_ns() - loaded_ns, 1000);
	u64 worked_us = div_u64(cpu_ns() - loaded_cpu_ns, 1000);

	if (zone == &dram)
		return div_u64(lived_us * dram_mw, 1000);
	return div_u64(lived_us * idle_mw + worked_us * busy_mw, 1000);
}

static u64 range_uj(void)
{
	return (u64)range_j * 1000000;
}

static int get_energy_uj(struct powercap_zone *zone, u64 *value)
{
	u64 rest;

	(void)div64_u64_rem(counted_uj(zone), range_uj(), &rest);
	*value = rest;
	return 0;
}

static int get_max_energy_range_uj(struct powercap_zone *zone, u64 *value)
{
	*value = range_uj();
	return 0;
}

static int release(struct powercap_zone *zone)
{
	return 0;
}

static const struct powercap_zone_ops zone_ops = {
    .get_energy_uj = get_energy_uj,
    .get_max_energy_range_uj = get_max_energy_range_uj,
    .release = release,
};

/* powercap takes no zone without these. */
static int get_limit(struct powercap_zone *zone, int id, u64 *value)
{
	*value = 0;
	return 0;
}

static int set_limit(struct powercap_zone *zone, int id, u64 value)
{
	return -EINVAL;
}

static const struct powercap_zone_constraint_ops constraint_ops = {
    .get_power_limit_uw = get_limit,
    .set_power_limit_uw = set_limit,
    .get_time_window_us = get_limit,
    .set_time_window_us = set_limit,
};

static int get_total(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%llu\n", counted_uj(parameter->arg));
}

static const struct kernel_param_ops total_ops = {.get = get_total};
module_param_cb(total_uj, &total_ops, &package, 0444);
module_param_cb(dram_total_uj, &total_ops, &dram, 0444);

static int __init load(void)
{
	struct powercap_zone *made;

	loaded_ns = ktime_get_ns();
	loaded_cpu_ns = cpu_ns();
	type = powercap_register_control_type(NULL, "intel-rapl", NULL);
	if (IS_ERR(type))
		return PTR_ERR(type);
	made = powercap_register_zone(&package, type, "package-0", NULL, &zone_ops, 1,
				      &constraint_ops);
	if (!IS_ERR(made))
		made = powercap_register_zone(&dram, type, "dram", &package, &zone_ops, 1,
					      &constraint_ops);
	if (!IS_ERR(made))
		return 0;
	if (package.control_type_inst)
		(void)powercap_unregister_zone(type, &package);
	(void)powercap_unregister_control_type(type);
	return PTR_ERR(made);
}

static void __exit unload(void)
{
	(void)powercap_unregister_zone(type, &dram);
	(void)powercap_unregister_zone(type, &package);
	(void)powercap_unregister_control_type(type);
}

module_init(load);
module_exit(unload);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Made-up energy zones for Steelyard's tests");
