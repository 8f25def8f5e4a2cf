"""Report, tables and exports of a collected study."""
