"""The columns of samples (docs/formats.md part 2), as DuckDB types."""

from __future__ import annotations

from steelyard.analysis.store.schema import sql_type
from steelyard.facts import quantities

# The fixed columns; a file may have more (zones, devices), or fewer in a version to come.
COLUMNS = {column.name: sql_type(column) for column in quantities.COLUMNS}
