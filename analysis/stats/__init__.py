"""Statistics: pure functions on numbers; they know no study."""
