/* What the kinds, roles and needs of facts/netem_keys.def are in C. A value of kind K is a field of
 * struct sy_netem: SY_FIELD_K(id), declared by SY_DECLARE_K(id). */
#ifndef STEELYARD_NETEM_SPEC_KEYS_H
#define STEELYARD_NETEM_SPEC_KEYS_H

enum sy_kind { SY_KIND_TIME, SY_KIND_WHOLE_MS, SY_KIND_PERCENT, SY_KIND_RATE, SY_KIND_COUNT };

#define SY_FIELD_TIME(id)     id##_us
#define SY_FIELD_WHOLE_MS(id) id##_us
#define SY_FIELD_PERCENT(id)  id##_ppb
#define SY_FIELD_RATE(id)     id##_bit_per_s
#define SY_FIELD_COUNT(id)    id##_packets

#define SY_DECLARE_TIME(id)	int64_t SY_FIELD_TIME(id);
#define SY_DECLARE_WHOLE_MS(id) int64_t SY_FIELD_WHOLE_MS(id);
#define SY_DECLARE_PERCENT(id)	int32_t SY_FIELD_PERCENT(id);
#define SY_DECLARE_RATE(id)	int64_t SY_FIELD_RATE(id);
#define SY_DECLARE_COUNT(id)	int64_t SY_FIELD_COUNT(id);
#define SY_DECLARE_OWN(id)

/* Whether a value was asked for by itself, by its role. */
#define SY_ASKED_FLAG(spec, id)	  ((spec)->has_##id)
#define SY_ASKED_PART(spec, id)	  false
#define SY_ASKED_PLACE(spec, id)  false
#define SY_ASKED_PLACES(spec, id) false

/* Only where the value is a number. */
#define SY_IF_NUMBER_TIME(...)	   __VA_ARGS__
#define SY_IF_NUMBER_WHOLE_MS(...) __VA_ARGS__
#define SY_IF_NUMBER_PERCENT(...)  __VA_ARGS__
#define SY_IF_NUMBER_RATE(...)	   __VA_ARGS__
#define SY_IF_NUMBER_COUNT(...)	   __VA_ARGS__
#define SY_IF_NUMBER_OWN(...)

#define SY_FLAG_FLAG(id) bool has_##id;
#define SY_FLAG_PART(id)
#define SY_FLAG_PLACE(id)
#define SY_FLAG_PLACES(id)

#endif
