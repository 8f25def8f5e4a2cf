/* The sources of joules on this node, and the administrator's idle power. */
#include "doctor/doctor.h"

#include "base/file.h"
#include "base/json_document.h"
#include "meters/idle_power_setting.h"
#include "probe/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME "energy"
#define TRY  "on a physical node try: modprobe intel_rapl_common"

/* The findings about all meters, one sentence each. */
struct meter_report {
	char all[768], counted[512], refused[512];
	int meters, counting, unreadable;
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "?";
}

__attribute__((format(printf, 4, 5))) static void join(char *text, size_t size, const char *between,
						       const char *format, ...)
{
	size_t length = strlen(text);
	va_list list;

	if (length)
		length += (size_t)snprintf(text + length, size - length, "%s", between);
	if (length >= size)
		return;
	va_start(list, format);
	(void)vsnprintf(text + length, size - length, format, list);
	va_end(list);
}

/* Meters of a kind with the same reason are reported once. */
static void add_refused(struct meter_report *report, const json_t *meter, const char *reason)
{
	char one[384];

	(void)snprintf(one, sizeof(one), "%s: %s; read by %s", text_of(meter, "meter"), reason,
		       text_of(meter, "read_by"));
	if (!strstr(report->refused, one))
		join(report->refused, sizeof(report->refused), "; ", "%s", one);
}

static void add_meter(struct meter_report *report, const json_t *meter, size_t i,
		      const json_t *missing)
{
	bool counts = json_is_true(json_object_get(meter, "counted"));
	bool readable = json_is_true(json_object_get(meter, "readable"));
	char key[64];

	report->meters++;
	report->counting += counts;
	report->unreadable += counts && !readable;
	join(report->all, sizeof(report->all), ", ", "%s (%s, %s)", text_of(meter, "name"),
	     text_of(meter, "meter"), text_of(meter, "covers"));
	if (counts)
		join(report->counted, sizeof(report->counted), ", ", "%s", text_of(meter, "name"));
	if (readable)
		return;
	(void)snprintf(key, sizeof(key), "meters.%zu.readable", i);
	add_refused(report, meter, text_of(missing, key));
}

static void report_meters(struct sy_doctor *doctor, const struct meter_report *report,
			  const char *none)
{
	if (!report->meters)
		sy_doctor_add(doctor, NAME, SY_WARNING, "guests and some clouds have none; " TRY,
			      "%s: joules will be null", none);
	else if (!report->counting)
		sy_doctor_add(doctor, NAME, SY_WARNING, "accelerators are distinguished; " TRY,
			      "%s: none of them is the node's, its joules will be null",
			      report->all);
	else if (report->unreadable)
		sy_doctor_add(
		    doctor, NAME, SY_WARNING,
		    "the Slurm plugin reads as root; `steelyard run` needs root for joules",
		    "%s: joules will be null here: %s", report->all, report->refused);
	else
		sy_doctor_add(doctor, NAME, SY_OK, "", "%s; the node's is the sum of %s%s%s",
			      report->all, report->counted,
			      report->refused[0] ? "; cannot be read: " : "", report->refused);
}

void sy_doctor_check_energy(struct sy_doctor *doctor)
{
	struct sy_document document = {.top = json_object(), .missing = json_object()};
	struct meter_report report = {.meters = 0};
	json_t *meter;
	size_t i;

	if (sy_doctor_is_selected(doctor, NAME)) {
		sy_probe_meters(doctor->root, &document);
		json_array_foreach(json_object_get(document.top, "meters"), i, meter)
		    add_meter(&report, meter, i, document.missing);
		report_meters(doctor, &report, text_of(document.missing, "meters"));
	}
	json_decref(document.top);
	json_decref(document.missing);
}

/* The node's name as schedulers write it. */
static void read_node_name(char *name, size_t size)
{
	name[0] = '\0';
	(void)gethostname(name, size - 1);
	name[size - 1] = '\0';
	name[strcspn(name, ".")] = '\0';
}

void sy_doctor_check_idle_power(struct sy_doctor *doctor)
{
	const char *name = "idle power";
	cleanup_close int conf_fd = sy_open_at(doctor->root, SY_NODE_CONF);
	struct sy_error err = {""};
	char node[256];
	double watts = 0;
	int result;

	if (conf_fd == -ENOENT)
		return;
	read_node_name(node, sizeof(node));
	result = sy_idle_power_read(doctor->root, node, &watts, &err);
	if (result == 0)
		sy_doctor_add(doctor, name, SY_OK, "", "%g W (" SY_NODE_CONF ")", watts);
	else if (result == SY_IDLE_POWER_FAULT)
		sy_doctor_add(doctor, name, SY_WARNING,
			      "mend that file: as long as a line of it is wrong none counts, and "
			      "records have no energy.idle_w (docs/admin.md, \"Energy\")",
			      "%s", err.text);
	else
		sy_doctor_add(doctor, name, SY_OK, "", "%s", err.text);
}
