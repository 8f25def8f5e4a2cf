/* NVIDIA's GPUs: the joules that each has used since its driver was loaded (Volta and later), by
 * nvmlDeviceGetTotalEnergyConsumption of libnvidia-ml.so.1, which comes with the driver. Of one
 * that counts none (NOT_SUPPORTED) the watts of nvmlDeviceGetPowerUsage are integrated.
 *
 * The driver lists its GPUs below /proc/driver/nvidia/gpus, so that the library is loaded by nobody
 * but the process that reads slow meters, once that has no rights left.
 * Sources: NVML API Reference Guide, "Device Queries"; NVIDIA driver README, "The /proc Interface".
 */
#include "meters/readers.h"

#include "base/file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define GPUS	      "/proc/driver/nvidia/gpus"
#define LIBRARY	      "libnvidia-ml.so.1"
#define RESOLUTION_UJ 1000 /* it reports mJ, and mW */
#define NOT_SUPPORTED 3	   /* NVML_ERROR_NOT_SUPPORTED */
#define PERIOD_US     1000000

/* Of nvml.h, which nobody needs to have: nvmlReturn_t, nvmlDevice_t. */
typedef int (*init_call)(void);
typedef int (*find_call)(const char *, void **);
typedef int (*energy_call)(void *, unsigned long long *);
typedef int (*power_call)(void *, unsigned int *);
typedef const char *(*error_string_call)(int);

enum { HAS_COUNTED };

static struct {
	void *library;
	init_call init;
	find_call find;
	energy_call energy;
	power_call power;
	error_string_call error_string;
	char reason[96]; /* set: there is nothing to be had from it */
} nvml;

static void *find_symbol(const char *name)
{
	void *found = dlsym(nvml.library, name);

	if (!found)
		(void)snprintf(nvml.reason, sizeof(nvml.reason), LIBRARY " has no %s", name);
	return found;
}

static void fail(const char *what, int code)
{
	(void)snprintf(nvml.reason, sizeof(nvml.reason), "%s: %.60s", what,
		       nvml.error_string(code));
}

static void load(void)
{
	int code;

	nvml.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!nvml.library) {
		(void)snprintf(nvml.reason, sizeof(nvml.reason), "%.90s", dlerror());
		return;
	}
	*(void **)&nvml.error_string = find_symbol("nvmlErrorString");
	*(void **)&nvml.init = find_symbol("nvmlInit_v2");
	*(void **)&nvml.find = find_symbol("nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&nvml.energy = find_symbol("nvmlDeviceGetTotalEnergyConsumption");
	*(void **)&nvml.power = find_symbol("nvmlDeviceGetPowerUsage");
	if (*nvml.reason)
		return;
	code = nvml.init();
	if (code)
		fail("nvmlInit", code);
}

/* mJ, or mW of a GPU that counts no joules (before Volta, and virtual ones); NVML's code. */
static int read_device(struct sy_meter *meter, unsigned long long *value)
{
	unsigned int mw;
	int code = NOT_SUPPORTED;

	if (!meter->power)
		code = nvml.energy(meter->device, value);
	meter->key[HAS_COUNTED] |= code == 0;
	if (code != NOT_SUPPORTED || meter->key[HAS_COUNTED])
		return code;
	code = nvml.power(meter->device, &mw);
	meter->power |= code == 0;
	*value = mw;
	return code;
}

/* The first reading finds the device: when it is requested, the rights are dropped. */
static int64_t read_micro(struct sy_meter *meter, const char **reason)
{
	unsigned long long milli = 0;
	int code = 0;

	*reason = nvml.reason;
	if (!nvml.library && !*nvml.reason)
		load();
	if (*nvml.reason)
		return -1;
	if (!meter->device)
		code = nvml.find(strrchr(meter->path, '/') + 1, &meter->device);
	if (!code)
		code = read_device(meter, &milli);
	if (!code && milli <= INT64_MAX / RESOLUTION_UJ)
		return (int64_t)milli * RESOLUTION_UJ;
	(void)snprintf(meter->reason, sizeof(meter->reason), "NVML: %.80s",
		       nvml.error_string(code));
	*reason = meter->reason;
	return -1;
}

static int open_later(int root, struct sy_meter *meter, struct sy_error *err)
{
	(void)root;
	(void)meter;
	(void)err;
	return 0;
}

/* The text behind "Key:" at the start of a line; "" when there is none. */
static void value_of(const char *information, const char *key, char *value, size_t size)
{
	const char *at = strstr(information, key);
	size_t length;

	value[0] = '\0';
	if (!at)
		return;
	at += strlen(key);
	at += strspn(at, " \t");
	length = strcspn(at, "\n");
	(void)snprintf(value, size, "%.*s", (int)length, at);
}

static void add(int root, struct sy_meter_list *found, const char *name)
{
	struct sy_meter *meter = sy_meter_list_add(found, &sy_nvml);
	char path[256], text[4096], minor[16];

	if (!meter)
		return;
	(void)snprintf(meter->path, sizeof(meter->path), GPUS "/%.64s", name);
	(void)snprintf(path, sizeof(path), "%s/information", meter->path);
	if (sy_read_at(root, path, text, sizeof(text)) < 0)
		text[0] = '\0';
	value_of(text, "Device Minor:", minor, sizeof(minor));
	value_of(text, "GPU UUID:", meter->identity, sizeof(meter->identity));
	meter->domain = SY_DOMAIN_ACCELERATOR;
	meter->unit = sy_parse_meter_unit(minor);
	meter->resolution = RESOLUTION_UJ;
	meter->period_us = PERIOD_US;
	meter->readable = true;
	if (meter->unit < 0)
		(void)snprintf(meter->name, sizeof(meter->name), "gpu-%.32s", name);
	else
		(void)snprintf(meter->name, sizeof(meter->name), "gpu-%d", meter->unit);
	if (meter->unit >= 0)
		(void)snprintf(meter->dev_name, sizeof(meter->dev_name), "nvidia%d", meter->unit);
}

static void find(int root, struct sy_meter_list *found, struct sy_error *err)
{
	cleanup_names struct sy_names names = {0};

	(void)err;
	if (sy_list_at(root, GPUS, &names) < 0)
		return;
	for (size_t i = 0; i < names.count && !found->full; i++)
		add(root, found, names.name[i]);
}

const struct sy_reader sy_nvml = {.name = "nvml",
				  .who = "whoever may open /dev/nvidia*",
				  .find = find,
				  .open = open_later,
				  .read = read_micro};
