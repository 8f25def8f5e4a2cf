"""Network conditions by hand: delay, loss, rate and more on this machine, and back again.

  steelyard netem check delay=50ms,loss=0.1%      can it be had here?
  steelyard netem apply delay=50ms,to=10.0.0.0/8  root: holds until clear
  steelyard netem show                            what holds, whose it is
  steelyard netem clear --all                     root: undo all
  steelyard netem sites FILE.toml                 root: links to other sites
  steelyard netem sites FILE.toml --write         root: for jobs, sites=FILE

A job has its own conditions for as long as it runs, where the admin allows it: sbatch --netem=SPEC
(Slurm), qsub -v STEELYARD_NETEM=SPEC (Torque, OpenPBS; a comma as \\, there); root measures one
command by `steelyard run --netem=SPEC -- COMMAND`. The grammar of SPEC is on the page docs/netem.md.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.wrappers.base import options
from steelyard.wrappers.commands import netem_sites

if TYPE_CHECKING:
    from steelyard.wrappers.netem.program import Specification

BY_HAND = "hand"  # stands for the job's id in what root applies here


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verbs and their options."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    add_check(verbs.add_parser("check", help="what a specification means, and if it can be had"))
    add_apply(verbs.add_parser("apply", help="put it in place until clear (root)"))
    add_show(verbs.add_parser("show", help="what holds on this machine, and whose it is"))
    add_clear(verbs.add_parser("clear", help="undo it (root)"))
    text = "put the links to other sites in place (root)"
    netem_sites.add_arguments(verbs.add_parser("sites", help=text))


def add_spec(parser: argparse.ArgumentParser) -> None:
    """SPEC."""
    text = "such as delay=50ms,loss=0.1%%,to=10.0.0.0/8, or none (docs/netem.md)"
    parser.add_argument("spec", metavar="SPEC", help=text)


def add_run_dir(parser: argparse.ArgumentParser) -> None:
    """--run-dir."""
    text = "where states lie (default: $STEELYARD_RUN_DIR, else /run/steelyard)"
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help=text)


def add_check(parser: argparse.ArgumentParser) -> None:
    """Options of check."""
    parser.description = (
        "What a specification means in words, whether the policy of this machine lets you have "
        "it in a job, and whether this kernel can do it. Exit code 2: SPEC is wrong; 4: it cannot "
        "be had here."
    )
    add_spec(parser)
    parser.add_argument("--policy", type=Path, metavar="FILE", help="look there for the policy")
    options.add_json(parser)


def add_apply(parser: argparse.ArgumentParser) -> None:
    """Options of apply."""
    parser.description = (
        "Put a condition in place on this machine and verify it. It holds until "
        "`steelyard netem clear`. Exit code 4: it could not be applied, and nothing has changed."
    )
    add_spec(parser)
    parser.add_argument("--peer", metavar="HOST", help="measure round-trip times to this host")
    text = f"by this name show and clear know it ({BY_HAND}); one name holds one condition"
    parser.add_argument("--name", metavar="NAME", default=BY_HAND, help=text)
    add_run_dir(parser)
    options.add_json(parser)


def add_show(parser: argparse.ArgumentParser) -> None:
    """Options of show."""
    parser.description = "Every condition that holds on this machine, and whose it is."
    add_run_dir(parser)
    options.add_json(parser)


def add_clear(parser: argparse.ArgumentParser) -> None:
    """Options of clear."""
    parser.description = "Undo one condition, by the job's id, which `show` prints, or all of them."
    parser.add_argument(
        "job", metavar="JOB", nargs="?", help="a job's id, or the name given to apply"
    )
    parser.add_argument("--all", action="store_true", help="everything of Steelyard's")
    add_run_dir(parser)


def main(args: argparse.Namespace) -> int:
    """Run one verb."""
    verbs = {"check": check, "apply": apply, "show": show, "clear": clear}
    return {**verbs, "sites": netem_sites.main}[args.verb](args)


@dataclass(frozen=True)
class Answer:
    """One of the things that `check` looks at; `ok` is None where it could not be found out."""

    what: str
    ok: bool | None
    says: str


def check(args: argparse.Namespace) -> int:
    """Exit code 4 as soon as one answer is no."""
    from dataclasses import asdict

    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.netem import words as netem_words

    spec = netem.parse(args.spec)
    answers = list(answers_about(spec, args.policy))
    if args.json:
        document = {"requested": spec.requested, "spec": spec.spec}
        console.print_json(document | {"answers": [asdict(answer) for answer in answers]})
    else:
        print(spec.requested)
        for phrase in netem_words.phrases(spec.spec):
            print(f"  {phrase}")
        for answer in answers:
            mark = {True: "yes", False: "NO", None: "?"}[answer.ok]
            print(f"{answer.what}: {mark}: {answer.says}")
    refused = any(answer.ok is False for answer in answers)
    return errors.CONDITION if refused else errors.DONE


def answers_about(spec: Specification, policy: Path | None) -> Iterator[Answer]:
    """Does the policy allow it, and can the kernel?"""
    from steelyard.wrappers.netem import kernel as netem_kernel

    yield allowed(spec, policy)
    if "sites" in spec.spec:
        yield has_sites(spec)
    for module in netem_kernel.needed(spec.spec):
        found = netem_kernel.can(module)
        yield Answer(f"kernel has {module}", found.there, found.says)


def has_sites(spec: Specification) -> Answer:
    """Jobs run on other nodes, perhaps: what is not had here says nothing of those."""
    from steelyard.wrappers.netem import program as netem

    lacking = netem.lacking_here(spec.requested)
    found = "is here, and this machine in one of its sites"
    return Answer("its file on this machine", None if lacking else True, lacking or found)


def allowed(spec: Specification, policy: Path | None) -> Answer:
    """What the policy says to this user."""
    from steelyard.wrappers.base.errors import ConditionError
    from steelyard.wrappers.netem import program as netem

    what = "allowed in your jobs"
    if policy is None and not netem.POLICY.exists():
        here = "none in jobs that run on this machine; other nodes have their own"
        return Answer(what, None, f"{netem.POLICY} is not there: {here}")
    words = [] if policy is None else [f"--policy={policy}"]
    try:
        answer = json.loads(netem.ask("netem", "check", *words, "--", spec.text))
    except ConditionError as error:
        return Answer(what, False, str(error))
    return Answer(what, True, f"by {answer['policy']}")


def apply(args: argparse.Namespace) -> int:
    """Put in place by hand; nobody is watched."""
    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.netem import words as netem_words

    spec = netem.parse(args.spec)
    if spec.requested == netem.NONE:
        raise errors.UsageError("none: nothing is touched; to undo: steelyard netem clear --all")
    netem.need_root(f"netem apply {args.spec}")
    peer = None if args.peer is None else netem.address_of(args.peer)
    wanted = netem.Conditions(network=spec.text, peer=peer)
    document = netem.apply(wanted, netem.run_dir(args.run_dir), args.name, watch=None)
    if args.json:
        console.print_json(document)
        return errors.DONE
    print("\n".join(netem_words.summary(document)))
    print(f"It holds until: steelyard netem clear {shlex.quote(args.name)}")
    return errors.DONE


def show(args: argparse.Namespace) -> int:
    """Every state."""
    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.netem import words as netem_words

    states = netem.show(netem.run_dir(args.run_dir))
    if args.json:
        console.print_json(states)
        return errors.DONE
    if not states:
        print("no network condition of Steelyard's holds on this machine")
    for state in states:
        print(netem_words.owner(state))
        print("\n".join(f"  {line}" for line in netem_words.summary(state)))
    return errors.DONE


def clear(args: argparse.Namespace) -> int:
    """One job's, or everything: also what no state tells of, found by Steelyard's own handle."""
    from steelyard.wrappers.base import errors
    from steelyard.wrappers.netem import program as netem
    from steelyard.wrappers.netem import words as netem_words

    if bool(args.job) == args.all:
        raise errors.UsageError("name one JOB (steelyard netem show lists them), or --all")
    netem.need_root("netem clear")
    folder = netem.run_dir(args.run_dir)
    states = [s for s in netem.show(folder) if args.all or s.get("job_id") == args.job]
    if not states and not args.all:
        raise errors.UsageError(
            f"{args.job}: has no conditions here: steelyard netem show lists them"
        )
    named = [["--all"]] if args.all else [whose(state) for state in states]
    for words in named:
        netem.ask("netem", "clear", f"--run-dir={folder}", *words)
    for state in states:
        print(f"undone: {netem_words.owner(state)}: {state.get('requested')}")
    if args.all:
        print("nothing of Steelyard's is left on this machine")
    return errors.DONE


def whose(state: dict[str, object]) -> list[str]:
    """A state as the options of steelyard-node name it: a job may have one on several nodes."""
    return [f"--job-id={state.get('job_id')}", f"--node={state.get('node')}"]
