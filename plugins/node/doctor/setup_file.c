#include "doctor/doctor.h"

#include <stdio.h>
#include <unistd.h>

/* A node is set up by a line of Slurm's plugstack.conf, or by /etc/steelyard/pbs.conf. */
static void read_pbs_settings(struct sy_doctor *doctor, const char *path)
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
		read_pbs_settings(doctor, doctor->settings);
	else if (doctor->plugstack || !doctor->is_machine || access(SY_JOB_CONFIG, F_OK) < 0) {
		if (sy_doctor_check_plugstack(doctor) < 0)
			sy_doctor_add(doctor, "plugstack line", SY_WARNING,
				      "on a node of Slurm: docs/admin.md, \"Install\"; of PBS: "
				      "docs/admin-pbs.md; --plugstack FILE names one "
				      "elsewhere",
				      "neither a plugstack.conf nor " SY_JOB_CONFIG
				      " was found: no scheduler's jobs are measured here");
	} else {
		read_pbs_settings(doctor, SY_JOB_CONFIG);
		(void)sy_doctor_check_plugstack(doctor);
	}
}
