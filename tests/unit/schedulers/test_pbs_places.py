"""Nodes on PBS: a study's nodes are joined with its options for the job."""

from __future__ import annotations

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.schedulers.pbs import node_request, options
from steelyard.wrappers.schedulers.pbs.node_request import NodeRequest


@pytest.mark.parametrize(
    ("given", "wanted", "whole"),
    [
        ("nodes=2", NodeRequest(2, None), "nodes=2"),
        ("nodes=2:virtual", NodeRequest(2, 4), "nodes=2:virtual:ppn=4"),
        ("nodes=2:virtual:ppn=1", NodeRequest(2, 4), "nodes=2:virtual:ppn=1"),
        ("nodes=1:a+1:b", NodeRequest(2, 2, ("big",)), "nodes=1:a:big:ppn=2+1:b:big:ppn=2"),
        ("nodes=2:big", NodeRequest(2, None, ("big", "new")), "nodes=2:big:new"),
        # The thesis' way: names, of which each level takes as many as it has clients.
        ("nodes=n1+n2+n3+n4", NodeRequest(4, 2), "nodes=n1:ppn=2+n2:ppn=2+n3:ppn=2+n4:ppn=2"),
        ("nodes=n1.home.net+n2.home.net", NodeRequest(1, None), "nodes=n1.home.net"),
        ("nodes=n1+n2#shared", NodeRequest(2, None), "nodes=n1+n2#shared"),
    ],
)
def test_nodes(given: str, wanted: NodeRequest, whole: str) -> None:
    assert node_request.format_nodes_spec(given, wanted) == whole


@pytest.mark.parametrize(
    ("given", "nodes", "said"),
    [
        ("nodes=n1+n2", 3, "asks for 2 nodes, and a run has 3"),
        ("nodes=1:virtual", 2, "asks for 1 node, and a run has 2"),
        ("nodes=2+n1", 2, "asks for 3 nodes, and a run has 2"),
    ],
)
def test_another_number_of_nodes_is_refused(given: str, nodes: int, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        node_request.format_nodes_spec(given, NodeRequest(nodes, None))


def test_chunks_of_openpbs() -> None:
    spread = node_request.format_select_spec(
        "select=2:virtual=True", NodeRequest(2, 4, ("big",)), True
    )
    assert spread == "select=2:virtual=True:big=True:ncpus=4:mpiprocs=4"
    assert (
        node_request.format_select_spec(
            "select=1:host=a+1:host=b+1:host=c", NodeRequest(2, None), True
        )
        == "select=1:host=a+1:host=b"
    )
    own = node_request.format_select_spec("select=8:ncpus=2", NodeRequest(2, None), False)
    assert own == "select=8:ncpus=2"  # packed as its own place= says
    with pytest.raises(UsageError, match="asks for 8 nodes, and a run has 2"):
        node_request.format_select_spec("select=8:ncpus=2", NodeRequest(2, None), True)


def test_constraints_are_properties() -> None:
    assert node_request.parse_properties(None) == ()
    assert node_request.parse_properties("a&b.c") == ("a", "b.c")
    with pytest.raises(UsageError, match=r"job.constraint = 'a\|b': on PBS it is a property"):
        node_request.parse_properties("a|b")


def test_options_come_into_one_form() -> None:
    words = ["-lnodes=2:x", "-l", "mem=4gb,place=free", "-W", "x=QOS:a b", "-m", "abe"]
    normal = ["-l nodes=2:x", "-l mem=4gb,place=free", "-W x=QOS:a b", "-m abe"]
    assert options.normalize_options(words) == normal
    assert options.split_node_options(normal) == ("nodes=2:x", normal[1:])
    assert options.split_node_options(["-l mem=1gb,select=2"]) == ("select=2", ["-l mem=1gb"])
