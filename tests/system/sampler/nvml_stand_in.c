/* In the place of libnvidia-ml.so.1, after the NVML API Reference Guide: two GPUs, whose joules
 * stand in files of the folder NVML_STAND_IN (a variable, or a macro for those whose environment is
 * made for them), "mJ", "error CODE" or "watts mW" of one that counts no joules. NVML_STAND_IN_MS:
 * how long a call takes, unless the file `ms` of the folder has another number. It refuses whoever
 * still has a right of root's, and calls before nvmlInit_v2. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef NVML_STAND_IN
#define NVML_STAND_IN ""
#endif

enum {
	SUCCESS = 0,
	UNINITIALIZED = 1,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NO_PERMISSION = 4,
	NOT_FOUND = 6,
	UNKNOWN = 999
};

int nvmlInit_v2(void);
const char *nvmlErrorString(int code);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj);
int nvmlDeviceGetPowerUsage(void *device, unsigned int *mw);

static char buses[2][32] = {"0000:3b:00.0", "0000:86:00.0"};
static int initialized;

static void take_time(void)
{
	const char *folder = getenv("NVML_STAND_IN"), *ms = getenv("NVML_STAND_IN_MS");
	int wait_ms = ms ? atoi(ms) : 0;
	char path[512];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/ms", folder ? folder : NVML_STAND_IN);
	file = fopen(path, "r");
	if (file) {
		(void)!fscanf(file, "%d", &wait_ms);
		(void)fclose(file);
	}
	(void)usleep((useconds_t)wait_ms * 1000);
}

int nvmlInit_v2(void)
{
	take_time();
	initialized = 1;
	return geteuid() == 0 ? NO_PERMISSION : SUCCESS;
}

const char *nvmlErrorString(int code)
{
	switch (code) {
	case SUCCESS:
		return "The operation was successful";
	case UNINITIALIZED:
		return "Uninitialized";
	case INVALID_ARGUMENT:
		return "Invalid Argument";
	case NOT_SUPPORTED:
		return "Not Supported";
	case NO_PERMISSION:
		return "Insufficient Permissions";
	case NOT_FOUND:
		return "Not Found";
	default:
		return "Unknown Error";
	}
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
	if (!initialized)
		return UNINITIALIZED;
	for (int i = 0; i < 2; i++)
		if (!strcmp(bus, buses[i])) {
			*device = buses[i];
			return SUCCESS;
		}
	return NOT_FOUND;
}

static FILE *open_text(const char *device)
{
	const char *folder = getenv("NVML_STAND_IN");
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/%s", folder ? folder : NVML_STAND_IN, device);
	return fopen(path, "r");
}

int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
	int code = UNKNOWN;
	unsigned int mw;
	FILE *file;

	if (!initialized)
		return UNINITIALIZED;
	if (!device || !mj)
		return INVALID_ARGUMENT;
	take_time();
	file = open_text(device);
	if (!file)
		return UNKNOWN;
	if (fscanf(file, "watts %u", &mw) == 1)
		code = NOT_SUPPORTED;
	else if (fseek(file, 0, SEEK_SET) == 0 && fscanf(file, "error %d", &code) != 1 &&
		 fscanf(file, "%llu", mj) == 1)
		code = SUCCESS;
	(void)fclose(file);
	return code;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned int *mw)
{
	FILE *file = open_text(device);
	int code = NOT_SUPPORTED;

	if (!file)
		return UNKNOWN;
	if (fscanf(file, "watts %u", mw) == 1)
		code = SUCCESS;
	(void)fclose(file);
	return code;
}
