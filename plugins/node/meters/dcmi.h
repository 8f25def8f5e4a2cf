/* The watts of a whole node as its BMC tells them: IPMI's DCMI, "Get Power Reading", asked through
 * /dev/ipmi0. Slow: some BMCs take a tenth of a second, and the driver may poll meanwhile. So the
 * samplers of a node share a reading, in /run/steelyard/dcmi: one of them asks every 5 s, and where
 * a job begins or ends, if the last answer is older than a second.
 *
 * In a recorded tree the answer's bytes stand in /.steelyard/ipmi/dcmi-power, as
 * `ipmitool raw 0x2c 0x02 0xdc 0x01 0x00 0x00` prints them.
 * Sources: Data Center Manageability Interface Specification 1.5, 6.6.1;
 * Documentation/driver-api/ipmi.rst of the kernel. */
#ifndef STEELYARD_METERS_DCMI_H
#define STEELYARD_METERS_DCMI_H

#include "meters/meter.h"

extern const struct sy_reader sy_dcmi;

/* µW out of an answer without its completion code; negative, with `why`: it tells no power. */
int64_t sy_dcmi_power_uw(const unsigned char *answer, size_t length, const char **why);

/* From now on readings are shared with all who call this for the same root, where its
 * /run/steelyard is theirs to write. */
void sy_dcmi_share(struct sy_meter *meter, int root);

#endif
