"""D. Bourilkov and others: virtual clients of a file system, in turn and all at once.

No number is printed.
"""

from __future__ import annotations

from pathlib import Path

from steelyard.analysis.papers.bourilkov2012.figures import draws
from steelyard.analysis.papers.paper import read_paper

PAPER = read_paper(
    Path(__file__).parent,
    "D. Bourilkov et al., virtual Lustre clients over LAN and WAN, CHEP 2012 (poster)",
    "Bourilkov et al. 2012",
    draws,
)
