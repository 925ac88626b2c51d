"""Memory of the local database servers: in huge pages, where the system has them."""

from __future__ import annotations

from collections.abc import Mapping

HUGE_PAGES: Mapping[str, str] = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=67108864"
    ":glibc.malloc.trim_threshold=536870912"
}
"""Environment of a server. The bare programs of the local stack have no allocator of their own, as
packaged ones often do: two bulk loads side by side cost a tenth less so (measured,
``benchmarks/sink_throughput.py``)."""
