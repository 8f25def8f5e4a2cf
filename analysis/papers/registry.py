"""The papers with which studies can be compared, by name."""

from __future__ import annotations

from steelyard.analysis.papers.bourilkov2012.paper import PAPER as BOURILKOV
from steelyard.analysis.papers.jungels2012.paper import PAPER as JUNGELS
from steelyard.analysis.papers.kommeri2016.paper import PAPER as KOMMERI
from steelyard.analysis.papers.ruiz2015.paper import PAPER as RUIZ

PAPERS = {paper.name: paper for paper in (BOURILKOV, JUNGELS, KOMMERI, RUIZ)}
