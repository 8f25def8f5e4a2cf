"""The packages: every folder below facts, analysis, jobscripts and wrappers; see also setup.cfg.

packaging/wheel/wheel.sh adds a folder `libexec` with programs to a copy of the sources. The wheel
of that copy is for one platform, and for every release of Python 3, since nothing in it is linked
with Python.
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

ROOTS = ("facts", "analysis", "jobscripts", "wrappers")
found = find_namespace_packages(
    ".", include=[name for root in ROOTS for name in (root, f"{root}.*")]
)
options = {}

if Path("libexec").is_dir():
    from setuptools import Distribution
    from setuptools.command.bdist_wheel import bdist_wheel

    class PlatformDistribution(Distribution):
        """Installs files to platlib, like those of an extension module."""

        def has_ext_modules(self):
            return True

    class PlatformWheel(bdist_wheel):
        """A wheel tagged py3-none-PLATFORM."""

        def get_tag(self):
            return "py3", "none", super().get_tag()[2]

    ROOTS = (*ROOTS, "libexec")
    found.append("libexec")
    options = {"distclass": PlatformDistribution, "cmdclass": {"bdist_wheel": PlatformWheel}}

setup(
    packages=[f"steelyard.{name}" for name in found],
    package_dir={f"steelyard.{root}": root for root in ROOTS},
    **options,
)
