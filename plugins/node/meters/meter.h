/* One meter of energy or power of any kind, and the interface that each kind implements.
 *
 * A reader finds its meters below a root, opens one, and reads it: µJ since whenever, or µW. It
 * knows nothing of the others; meters.h says which of all count, and sums. */
#ifndef STEELYARD_METERS_METER_H
#define STEELYARD_METERS_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What a meter covers. */
enum sy_domain {
	SY_DOMAIN_OTHER,   /* a part that has no word here, or is not known */
	SY_DOMAIN_NODE,	   /* all of it, accelerators included */
	SY_DOMAIN_MODULE,  /* a package and the accelerator that is one part with it */
	SY_DOMAIN_PSYS,	   /* what the processor's maker calls the platform: holds the packages */
	SY_DOMAIN_PACKAGE, /* a processor */
	SY_DOMAIN_CORE,	   /* within a package */
	SY_DOMAIN_UNCORE,  /* within a package */
	SY_DOMAIN_DRAM,	   /* memory, not part of the packages */
	SY_DOMAIN_ACCELERATOR, /* a GPU */
};

struct sy_reader;

struct sy_meter {
	const struct sy_reader *reader;
	char name[48];	       /* "package-0", "dram", …; "" when it could not be read */
	char path[160];	       /* what is read: "/sys/class/powercap/intel-rapl:0" */
	enum sy_domain domain; /* with `unit` what it covers */
	int unit;	       /* which package or accelerator; -1: unknown, or the only one */
	bool per_package;      /* reports its whole package, even where each die has such a meter */
	int parent;	       /* index of the meter that holds this one, or -1 */
	int64_t range_uj;   /* µJ at which it starts again; 0: it does not, or it is not known */
	int64_t resolution; /* its least step, µJ or µW; 0: not known */
	int64_t period_us;  /* slow: read so often by a process of its own; 0: with each sample */
	int64_t mean_us;    /* of power: of the time before the reading that it is the mean of */
	int64_t at_us; /* monotonic time of the last value, where the meter reports it; else 0 */
	int64_t max_age_us; /* of a reading by another sampler, where samplers share them */
	bool power;	    /* reports watts: its joules are their integral over time */
	bool readable;	    /* by this process */
	bool counted;	    /* in the node's total; also when not readable */
	char reason[96];    /* why it is not readable, for `missing`; else "" */
	char identity[48]; /* of an accelerator, in its vendor's form: "GPU-5d3e…"; "": unknown */
	char dev_name[24]; /* its file below /dev: "nvidia0", "dri/renderD128"; "": unknown */
	/* The reader's own. */
	int fd;
	int64_t key[3];
	double scale;
	void *device;
};

/* Meters on their way into a list of limited length. */
struct sy_meter_list {
	struct sy_meter *meter;
	int count, capacity;
	bool full; /* there was one more */
};

struct sy_reader {
	const char *name; /* in records: "powercap" */
	const char *who;  /* may read it, in words */
	/* Append the meters below `root`; when there are none, `err` has the reason. */
	void (*find)(int root, struct sy_meter_list *found, struct sy_error *err);
	/* Prepare one for reading, with the rights of the finder: 0, or -1. */
	int (*open)(int root, struct sy_meter *meter, struct sy_error *err);
	/* The counter in µJ, or the power in µW; negative: not readable; `reason` may have
	 * details. The first reading of a slow meter may set `power`: only then is it known that
	 * no counter has its joules. */
	int64_t (*read)(struct sy_meter *meter, const char **reason);
};

/* Whether the dies of a package have one counter, which each of them shows: AMD's processors, and
 * Hygon's (Linux 6.11, "perf/x86/rapl: Fix the energy-pkg event for AMD CPUs"). Intel's have their
 * own. */
bool sy_dies_share_a_counter(int root);

/* The next place, empty but for its reader; NULL when the list is full. */
struct sy_meter *sy_meter_list_add(struct sy_meter_list *found, const struct sy_reader *reader);

/* "package"; what it is called in records. */
const char *sy_domain_name(enum sy_domain domain);

/* A number at the start of a kept file, in units of `scale` µ: negative when there is none. */
int64_t sy_meter_read_file(const struct sy_meter *meter, int64_t scale);

/* What has not been read for so long is not known, whatever was read before. */
int64_t sy_meter_stale_us(const struct sy_meter *meter);

/* The number of a package or a card: -1 where there is no digit, or more than any machine has. */
int sy_parse_meter_unit(const char *digits);

/* µ units as the whole number that they are; negative when no such number is that large. */
int64_t sy_meter_to_integer(double micro);

/* Open a file for that: 0, or -1 with why not, in the words of its last part. */
int sy_meter_open_file(int root, const char *path, struct sy_meter *meter, struct sy_error *err);

#endif
