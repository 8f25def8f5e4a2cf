/* `steelyard-node doctor`: what one look has found, and the list of them. */
#include "doctor/doctor.h"

#include "base/json_document.h"
#include "record/record_files.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
