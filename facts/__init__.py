"""Facts that C and Python share, each written once.

- quantities.def: every column of the samples and every total of the record. C includes it,
  `quantities` reads it.
- netem_keys.def: every value of a network specification, with grammar, bounds and words of tc;
  `netem_keys` reads it. netem_trials.def: how a kernel module for conditions is tested.
- fields/NAME.toml: the fields of the JSON documents that users read, with type and meaning;
  `json_fields` reads them. Tests compare what programs write with them.

`def_rows` reads rows of a .def file. Tables in docs are made from these files by `make docs`. To add a
quantity, a key or a field, add a row here first; the compiler and the tests name what is missing.

The package imports nothing of Steelyard. It has facts only: what is done with them is elsewhere.
"""
