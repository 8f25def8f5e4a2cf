"""The study file, its plan and its folder."""
