"""The columns of samples (docs/formats.md part 2), as DuckDB types."""

from __future__ import annotations

# The fixed columns; a file may have more (zones, devices), or fewer in a version to come.
COLUMNS = {
    "unix_s": "DOUBLE",
    "elapsed_s": "DOUBLE",
    "cpu_s": "DOUBLE",
    "memory_bytes": "BIGINT",
    "processes": "BIGINT",
    "rchar_bytes": "BIGINT",
    "wchar_bytes": "BIGINT",
    "read_bytes": "BIGINT",
    "write_bytes": "BIGINT",
    "rx_bytes": "BIGINT",
    "tx_bytes": "BIGINT",
    "sent_segments": "BIGINT",
    "retransmitted_segments": "BIGINT",
    "pressure_cpu_s": "DOUBLE",
    "pressure_io_s": "DOUBLE",
    "pressure_memory_s": "DOUBLE",
    "energy_j": "DOUBLE",
    "rtt_s": "DOUBLE",
}
