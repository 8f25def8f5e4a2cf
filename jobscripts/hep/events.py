"""Seeded collision-like events with varying numbers of muons and jets, and their expected results.

Branch names are those of CMS' NanoAOD (cms-opendata-guide, "NanoAOD"); units are GeV and radians.
Of every float only the first 12 bits of the mantissa are used, as in NanoAOD, which compresses
better. `reckon` finds the muon pairs with flat arrays: independently of client_tasks.py, which uses
awkward, so that each checks the other.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.generic]
Floats = NDArray[np.float32]

LEAST_PT, MOST_ETA = np.float32(20.0), np.float32(2.4)  # GeV; the muon system's reach in CMS
Z_MASS, Z_WIDTH = 91.1876, 2.4952  # GeV, Particle Data Group
MUON_MASS = 0.10566  # GeV
Z_SHARE = 0.2  # share of the events that contain a Z
JAGGED = ("Muon", "Jet")


class Events:
    """Generates the events of a seed in blocks."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def block(self, number: int, first: int, count: int) -> dict[str, Array]:
        """Return the columns of `count` events, the first of them being event `first`.

        Jagged columns are flat, with their lengths in nMuon and nJet.
        """
        rng = np.random.default_rng([self.seed, number])
        columns: dict[str, Array] = {
            "run": np.full(count, 1 + self.seed % 1000, np.int32),
            "event": np.arange(first, first + count, dtype=np.int64),
            "MET_pt": short(rng.exponential(25.0, count)),
            "MET_phi": short(rng.uniform(-math.pi, math.pi, count)),
        }
        columns.update(muons(rng, count))
        columns.update(jets(rng, count))
        return columns


def short(values: NDArray[np.float64]) -> Floats:
    """Return 32-bit floats with 12 bits of mantissa."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFF800)
    return bits.view(np.float32)


def muons(rng: np.random.Generator, count: int) -> dict[str, Array]:
    """Generate muons; in every fifth event the first two have the mass of a Z."""
    has_z = rng.random(count) < Z_SHARE
    number = rng.poisson(0.8, count) + 2 * has_z
    total = int(number.sum())
    pt = rng.exponential(12.0, total) + 3.0
    eta = rng.normal(0.0, 1.3, total)
    phi = rng.uniform(-math.pi, math.pi, total)
    charge = rng.choice(np.array([-1, 1], np.int32), total)
    one = (np.cumsum(number) - number)[has_z]
    two = one + 1
    # The second momentum is solved from the formula of `masses` for the pair's mass.
    mass = np.clip(Z_MASS + Z_WIDTH / 2 * rng.standard_cauchy(one.size), 60.0, 120.0)
    pt[one] = rng.normal(45.0, 8.0, one.size).clip(5.0)
    turn = np.cosh(eta[one] - eta[two]) - np.cos(phi[one] - phi[two])
    pt[two] = (mass**2 / (2 * pt[one] * turn.clip(1e-3))).clip(3.0, 500.0)
    charge[two] = -charge[one]
    return {
        "nMuon": number.astype(np.int32),
        "Muon_pt": short(pt),
        "Muon_eta": short(eta),
        "Muon_phi": short(phi),
        "Muon_mass": np.full(total, MUON_MASS, np.float32),
        "Muon_charge": charge,
    }


def jets(rng: np.random.Generator, count: int) -> dict[str, Array]:
    """Generate jets, which the analysis does not read: most of a real file is unused, too."""
    number = rng.poisson(4.0, count)
    total = int(number.sum())
    pt = 15.0 + rng.exponential(30.0, total)
    return {
        "nJet": number.astype(np.int32),
        "Jet_pt": short(pt),
        "Jet_eta": short(rng.normal(0.0, 2.0, total)),
        "Jet_phi": short(rng.uniform(-math.pi, math.pi, total)),
        "Jet_mass": short(0.1 * pt + rng.exponential(2.0, total)),
        "Jet_btag": short(rng.beta(0.5, 2.0, total)),
    }


def masses(
    pt: tuple[Floats, Floats], eta: tuple[Floats, Floats], phi: tuple[Floats, Floats]
) -> NDArray[np.float64]:
    """Return invariant masses (GeV) of two light particles: m² = 2 p p' (cosh Δη - cos Δφ).

    The formula is of the Particle Data Group's review "Kinematics", for masses that are much
    smaller than the momenta.
    """
    (pt1, pt2), (eta1, eta2), (phi1, phi2) = (
        (pair[0].astype(np.float64), pair[1].astype(np.float64)) for pair in (pt, eta, phi)
    )
    square: NDArray[np.float64] = 2 * pt1 * pt2 * (np.cosh(eta1 - eta2) - np.cos(phi1 - phi2))
    return np.sqrt(square)


class Pairs:
    """Summarizes selected pairs in order: the result that a client must reproduce.

    `sha256` is of the six floats of each pair, which are identical on every machine. `mass_sum_gev`
    may differ in its last digits, since cosh and cos differ between processors.
    """

    def __init__(self) -> None:
        self.selected = 0
        self.sums: list[float] = []
        self.digest = hashlib.sha256()

    def add(self, kinematics: Mapping[str, tuple[Floats, Floats]]) -> NDArray[np.float64]:
        """Add pairs by `pt`, `eta` and `phi` of their two muons; return their masses in GeV."""
        rows = [column for name in ("pt", "eta", "phi") for column in kinematics[name]]
        found = masses(kinematics["pt"], kinematics["eta"], kinematics["phi"])
        self.selected += found.size
        self.sums.append(math.fsum(found))
        self.digest.update(np.stack(rows, axis=1).astype("<f4").tobytes())
        return found

    def result(self) -> dict[str, object]:
        """Return the summary for JSON."""
        return {
            "selected": self.selected,
            "mass_sum_gev": math.fsum(self.sums),
            "sha256": self.digest.hexdigest(),
        }


def reckon(columns: Mapping[str, Array], pairs: Pairs) -> None:
    """Add a block's pairs: the first two muons with pt > 20 and |eta| < 2.4, of opposite charge."""
    owner = np.repeat(np.arange(columns["nMuon"].size), columns["nMuon"].astype(np.int64))
    good = np.flatnonzero(
        (columns["Muon_pt"] > LEAST_PT) & (np.abs(columns["Muon_eta"]) < MOST_ETA)
    )
    _, first, number = np.unique(owner[good], return_index=True, return_counts=True)
    one, two = good[first[number >= 2]], good[first[number >= 2] + 1]
    opposite = columns["Muon_charge"][one] != columns["Muon_charge"][two]
    one, two = one[opposite], two[opposite]
    pairs.add(
        {
            name: (columns[f"Muon_{name}"][one], columns[f"Muon_{name}"][two])
            for name in ("pt", "eta", "phi")
        }
    )
