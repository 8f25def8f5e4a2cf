"""Documents of network conditions (docs/formats.md part 9), as a node writes them."""

from __future__ import annotations

from typing import Any


def rtt(median_s: float) -> dict[str, float]:
    """Return 20 round trips, all of them answered."""
    return {
        "sent": 20,
        "received": 20,
        "min_s": median_s * 0.98,
        "median_s": median_s,
        "mean_s": median_s,
        "sd_s": median_s * 0.01,
        "max_s": median_s * 1.05,
    }


def conditions(requested: str = "delay=50ms", **fields: Any) -> dict[str, Any]:
    """Return the complete document of a job that kept its conditions."""
    return {
        "requested": requested,
        "spec": {"delay_s": 0.05},
        "applied": requested,
        "scope": "node",
        "scope_by": None,
        "devices": [
            {
                "device": "eth0",
                "direction": "egress",
                "qdisc": "netem",
                "limit_packets": 100000,
                "mtu": 1500,
                "kernel": "qdisc netem 53e: root refcnt 2 limit 100000 delay 50ms",
                "before": "qdisc fq_codel 0: root",
                "offloads_off": [],
            }
        ],
        "protected": ["10.0.0.1/32"],
        "peer": "10.0.0.9",
        "rtt": {
            "before": rtt(0.0003),
            "during_start": rtt(0.0503),
            "during_end": rtt(0.0504),
            "after": rtt(0.0003),
        },
        "counters": {
            "sent_packets": 4000,
            "sent_bytes": 5_000_000,
            "dropped_packets": 0,
            "overlimits": 0,
            "requeues": 0,
        },
        "loss": {"achieved": 0.0, "low": 0.0, "high": 0.00096, "packets": 4000},
        "apply_s": 0.012,
        "verify_s": 2.1,
        "undo_s": 0.009,
        "start_unix_s": 1_790_000_000.5,
        "end_unix_s": 1_790_000_020.5,
        "valid": True,
        "invalid_reason": None,
        "undone": True,
        "undone_by": "job",
    } | fields
