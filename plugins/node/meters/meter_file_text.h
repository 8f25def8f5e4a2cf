/* The text of a meter of the administrator's own (meter_file.h): lines "KEY VALUE", strictly. */
#ifndef STEELYARD_METERS_METER_FILE_TEXT_H
#define STEELYARD_METERS_METER_FILE_TEXT_H

#include "meters/meter.h"

/* What such a file says: all in µ. */
struct sy_file_said {
	enum sy_domain domain;
	int unit;
	bool power;
	int64_t value, at_us, period_us, mean_us, range_uj, resolution;
};

/* 0, or -1: which line is wrong. Changes the text. */
int sy_file_said_parse(char *text, struct sy_file_said *told, struct sy_error *err);

#endif
