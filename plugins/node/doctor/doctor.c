/* `steelyard-node doctor`: what one look has found, and the list of them. */
#include "doctor/doctor.h"

#include "base/document.h"
#include "base/folder.h"
#include "record/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const words[SY_STATES_OF_CHECKS] = {"ok", "warning", "missing"};

bool sy_doctor_uses_spool(const struct sy_doctor *doctor)
{
	const char *records = doctor->config.record_dir;

	return sy_has_spool(doctor->spool_dir) && !sy_records_by_day(records) &&
	       sy_records_are_marked_by_owner(records);
}

bool sy_doctor_is_selected(const struct sy_doctor *doctor, const char *name)
{
	return !doctor->only || strcmp(doctor->only, name) == 0;
}

void sy_doctor_add(struct sy_doctor *doctor, const char *name, enum sy_state state,
		   const char *advice, const char *format, ...)
{
	char found[2048];
	va_list list;

	if (!sy_doctor_is_selected(doctor, name))
		return;
	va_start(list, format);
	(void)vsnprintf(found, sizeof(found), format, list);
	va_end(list);
	(void)json_array_append_new(doctor->checks,
				    json_pack("{s:s, s:s, s:o, s:o}", "name", name, "state",
					      words[state], "found", sy_json_text(found), "advice",
					      sy_json_text(advice)));
}

int sy_doctor_count(const struct sy_doctor *doctor, enum sy_state state)
{
	int count = 0;
	json_t *check;
	size_t i;

	json_array_foreach(doctor->checks, i, check)
	{
		const char *word = json_string_value(json_object_get(check, "state"));

		count += word && strcmp(word, words[state]) == 0;
	}
	return count;
}

/* How Steelyard was set up on this node: by a line of Slurm's plugstack.conf, or by
 * /etc/steelyard/pbs.conf. */
static void take_pbs(struct sy_doctor *doctor, const char *path)
{
	const char *name = "PBS settings";
	struct sy_error err = {""};

	doctor->is_set_up = true;
	(void)snprintf(doctor->setup_file, sizeof(doctor->setup_file), "%s", path);
	if (sy_job_config_read(&doctor->config, path, false, &err) < 0)
		sy_doctor_add(doctor, name, SY_WARNING,
			      "mend it: docs/admin-pbs.md says what may stand there", "%s",
			      err.text);
	else
		sy_doctor_add(doctor, name, SY_OK, "", "%s", path);
}

void sy_doctor_find_setup(struct sy_doctor *doctor)
{
	if (doctor->settings)
		take_pbs(doctor, doctor->settings);
	else if (doctor->plugstack || !doctor->is_machine || access(SY_JOB_CONFIG, F_OK) < 0) {
		if (sy_doctor_check_plugstack(doctor) < 0)
			sy_doctor_add(doctor, "plugstack line", SY_WARNING,
				      "on a node of Slurm: docs/admin.md, \"Install\"; of PBS: "
				      "docs/admin-pbs.md; --plugstack FILE names one that lies "
				      "elsewhere",
				      "neither a plugstack.conf nor " SY_JOB_CONFIG
				      " was found: no scheduler's jobs are measured here");
	} else {
		take_pbs(doctor, SY_JOB_CONFIG);
		(void)sy_doctor_check_plugstack(doctor);
	}
}
