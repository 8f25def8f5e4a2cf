"""J. Kommeri and others: what distant data cost an analysis, in seconds and in joules."""
