"""The packages: every folder below facts, analysis, jobscripts and wrappers; all else is in setup.cfg."""

from setuptools import find_namespace_packages, setup

ROOTS = ("facts", "analysis", "jobscripts", "wrappers")
found = find_namespace_packages(
    ".", include=[name for root in ROOTS for name in (root, f"{root}.*")]
)

setup(
    packages=[f"steelyard.{name}" for name in found],
    package_dir={f"steelyard.{root}": root for root in ROOTS},
)
