"""Devices by their data sheets, and what of it programs reach.

Peak figures are the makers' own (dense bf16, no sparsity). The shares of them that are reached are
*assumptions*, the same for all devices, and can be set: no figure here was measured on a GPU.
`mfu` 0.45 is of the matrix products alone: with what other operations read and write beside them, a
7B then reaches 0.36 of an H100's peak in all, where public runs report 0.35 to 0.5;
`bandwidth_share` 0.7 and `prefill_mfu` 0.5 are what roofline studies of vLLM find for decoding and
prefill; `launch_seconds` is the time a decoding step needs however small the batch is;
`disk_bandwidth` is what one NVMe disk writes in a row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from memograd.errors import BadInput

GIB = 2**30


@dataclass(frozen=True)
class Device:
    """One accelerator. flops: dense bf16 operations a second; bytes and bytes a second otherwise.

    link: bandwidth of one device to its neighbours in the machine, one direction. host: to the
    machine's memory.
    """

    name: str
    memory: float
    flops: float
    bandwidth: float
    link: float
    host: float


@dataclass(frozen=True)
class Efficiency:
    """Which share of the data sheet is reached, and bytes a second of the disk (see the module's
    note)."""

    mfu: float = 0.45
    prefill_mfu: float = 0.5
    bandwidth_share: float = 0.7
    link_share: float = 0.7
    launch_seconds: float = 0.006
    disk_bandwidth: float = 2e9


# NVIDIA's data sheets of the SXM forms (PCIe for L40S and RTX 4090, which have no NVLink).
DEVICES: Mapping[str, Device] = {
    device.name: device
    for device in (
        Device("H200", 141e9, 989e12, 4.8e12, 450e9, 55e9),
        Device("H100", 80e9, 989e12, 3.35e12, 450e9, 55e9),
        Device("A100", 80e9, 312e12, 2.04e12, 300e9, 25e9),
        Device("A100-40G", 40e9, 312e12, 1.56e12, 300e9, 25e9),
        Device("L40S", 48e9, 362e12, 0.864e12, 25e9, 25e9),
        Device("RTX4090", 24e9, 165e12, 1.01e12, 25e9, 25e9),
        Device("B200", 180e9, 2250e12, 7.7e12, 900e9, 55e9),
    )
}


@dataclass(frozen=True)
class Cluster:
    """`count` equal devices, `per_machine` of them beside each other.

    network: bytes a second of one device to another machine (400 Gbit/s a device unless told).
    """

    device: Device
    count: int
    per_machine: int = 8
    network: float = 50e9

    @property
    def machines(self) -> int:
        """How many machines that is."""
        return -(-self.count // self.per_machine)

    def ring_bandwidth(self, ranks: int) -> float:
        """Bytes a second of the slowest link in a ring of `ranks` devices."""
        return self.device.link if ranks <= self.per_machine else self.network


def parse_cluster(text: str, *, per_machine: int = 8) -> Cluster:
    """`8xH200`, or `H100` for one. Raises BadInput for what is not a count and a known device."""
    match = re.fullmatch(r"\s*(?:(\d+)\s*[x*×]\s*)?([a-zA-Z][\w-]*)\s*", text)
    if match is None or (match[1] and int(match[1]) == 0):
        raise BadInput(f'--gpus must be a count and a device, such as "8xH200", not {text!r}.')
    known = {name.lower(): device for name, device in DEVICES.items()}
    device = known.get(match[2].lower())
    if device is None:
        near = get_close_matches(match[2].upper(), DEVICES, n=1, cutoff=0.3)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise BadInput(
            f"The device {match[2]!r} is not known{hint}; known are {', '.join(DEVICES)}."
        )
    return Cluster(device, int(match[1] or 1), per_machine)


def ring_seconds(size: float, ranks: int, cluster: Cluster, efficiency: Efficiency) -> float:
    """Seconds to gather (or to reduce and scatter) `size` bytes over a ring of `ranks` devices.

    `(ranks - 1) / ranks * size / bandwidth`: Patarasuk and Yuan, "Bandwidth optimal all-reduce
    algorithms", 2009. An all-reduce is twice that.
    """
    if ranks < 2:
        return 0.0
    reached = cluster.ring_bandwidth(ranks) * efficiency.link_share
    return (ranks - 1) / ranks * size / reached
