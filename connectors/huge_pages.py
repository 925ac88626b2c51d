"""Puts the memory of processes that load rows in bulk into huge pages, if the system has them."""

from __future__ import annotations

from collections.abc import Mapping

HUGE_PAGES: Mapping[str, str] = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=67108864"
    ":glibc.malloc.trim_threshold=536870912"
}
"""Environment of such a process; without glibc or huge pages it has no effect.

Spark's Python workers: records come and go by the hundred thousand, and a page fault for every five
of them took a tenth of the time. The local database servers: bare programs, without an allocator of
their own as packaged ones often have; two bulk loads side by side cost a tenth less.

Source: measured, ``benchmarks/sink_throughput.py``.
"""
