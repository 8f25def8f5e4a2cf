/* The kinds of meters that a node may have, each found, opened and read in its own file. The head
 * of that file says what the kind measures, how it is read, and which sources describe it. meters.c
 * has their order. */
#ifndef STEELYARD_METERS_READERS_H
#define STEELYARD_METERS_READERS_H

#include "meters/meter.h"

extern const struct sy_reader sy_amdgpu; /* AMD's GPUs */
extern const struct sy_reader sy_cray;	 /* HPE Cray's blades */
extern const struct sy_reader sy_dcmi;	 /* a BMC, by IPMI */
extern const struct sy_reader sy_hwmon;	 /* sensors of the kernel that count or report sockets */
extern const struct sy_reader sy_meter_file; /* the administrator's own */
extern const struct sy_reader sy_nvml;	     /* NVIDIA's GPUs */
extern const struct sy_reader sy_perf;	     /* RAPL by perf's power events */
extern const struct sy_reader sy_powercap;   /* RAPL by the powercap class */

/* Is it a second view of the same counter, through memory-mapped registers? */
bool sy_powercap_is_mmio(const struct sy_meter *meter);

/* From this call on BMC readings are shared with all processes that call it for the same root and
 * can write its /run/steelyard. */
void sy_dcmi_share(struct sy_meter *meter, int root);

/* µW out of an answer without its completion code; negative, with `reason`: it has no power. */
int64_t sy_dcmi_power_uw(const unsigned char *answer, size_t length, const char **reason);

/* Of the firmware's table: µJ; negative, with `reason`: it has none. And µW; negative: it has none.
 */
int64_t sy_amdgpu_energy_uj(const unsigned char *table, size_t length, const char **reason);
int64_t sy_amdgpu_power_uw(const unsigned char *table, size_t length);

/* The contents of an administrator's own meter file, in millionths. */
struct sy_meter_text {
	enum sy_domain domain;
	int unit;
	bool power;
	int64_t value, at_us, period_us, mean_us, range_uj, resolution;
};

/* 0, or -1: which line is wrong. Changes the text. */
int sy_parse_meter_text(char *text, struct sy_meter_text *parsed, struct sy_error *err);

#endif
