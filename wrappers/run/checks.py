"""Checks what `steelyard run` was asked before anything is begun."""

from __future__ import annotations

import argparse
import re

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.launchers import launcher as launchers
from steelyard.wrappers.launchers import needs as launcher_checks
from steelyard.wrappers.launchers.launcher import Launcher
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.netem.program import Conditions
from steelyard.wrappers.study.job import TAG_KEY

MIN_RATE_HZ, MAX_RATE_HZ = 0.001, 1000.0


def checked_conditions(args: argparse.Namespace) -> Conditions:
    """What was asked for, of the right form, and possible here as far as that can be told now."""
    if args.netem != netem.NONE:
        netem.parse(args.netem)
    elif args.peer is not None:
        raise UsageError("--peer: goes with --netem=SPEC, whose round-trip times are measured")
    peer = None if args.peer is None else netem.address_of(args.peer)
    wanted = netem.Conditions(args.netem, args.cache, peer)
    netem.check_here(wanted)
    return wanted


def checked_launcher(text: str, condition: str = netem.NONE) -> Launcher:
    """A launcher that this machine has, this user may use, and the condition can hold for."""
    try:
        launcher = launchers.parse(text)
    except UsageError as error:
        raise UsageError(f"--in: {error}", part=text) from error
    why = launchers.condition_refusal(launcher, condition)
    if why is not None:
        raise UsageError(f"--in {text} --netem={condition}: {why}", part=text)
    around = netem.of_this_job()
    why = launchers.condition_refusal(launcher, around)
    if why is not None:
        raise UsageError(f"--in {text}: this job has --netem={around}: {why}", part=text)
    launcher_checks.check_here(launcher)
    return launcher


def checked_rate(text: str | None) -> float | None:
    """A rate that the sampler can keep: the grammar and the words of plugins/node/base/rate.c."""
    if text is None:
        return None
    plain = re.fullmatch(r"[0-9]+\.?[0-9]*|\.[0-9]+", text)
    rate_hz = float(text) if plain else -1.0
    if rate_hz != 0 and not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise UsageError(
            f"--sample-rate={text}: expected a rate in Hz: 0 (totals only), or {MIN_RATE_HZ:g} "
            f"to {MAX_RATE_HZ:g}",
            part=text,
        )
    return rate_hz


def checked_tags(tags: list[str]) -> tuple[str, ...]:
    """KEY=VALUE each."""
    for tag in tags:
        key, equals, value = tag.partition("=")
        if not (equals and TAG_KEY.fullmatch(key) and value and value.isprintable()):
            raise UsageError(f"--tag {tag}: allowed is KEY=VALUE, the key a word", part=tag)
    return tuple(tags)
