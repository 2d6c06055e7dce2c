"""PyTorch's caching allocator as a model: replays allocations and frees, and says what would have been reserved.

Sizes are bytes. The rules are those of PyTorch's native CUDA allocator with its default settings: requests are
rounded up to 512 bytes; up to 1 MiB they share segments of 2 MiB, below 10 MiB segments of 20 MiB, larger ones get a
segment of their own, rounded up to 2 MiB; a free block is split where enough is left over; free neighbours merge.
When the device is full, wholly free segments are given back, and only then is it out of memory. With expandable
segments each pool is one growing range of pages.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

BLIND_SPOTS = (
    "scratch inside kernels (except cuBLAS workspaces, flash attention's backward and bitsandbytes's products)",
    "the context and the driver (about 0.7 GB on an H100)",
    "other streams, CUDA graphs, torch.compile",
)
BLOCK = 512
MIB = 1 << 20
SMALL = 1 * MIB  # the largest request of the small pool
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
OWN_SEGMENT = 10 * MIB  # from here on a request gets a segment of its own
PAGE = 2 * MIB  # what a segment is rounded up to
_APART = 1 << 30  # between two segments: they never merge


class OutOfMemory(Exception):
    """The device is full. The text says what was asked for, as the allocator would."""


@dataclass
class _Block:
    size: int
    segment: int
    pool: str
    free: bool = True
    before: int | None = None
    after: int | None = None


@dataclass
class Allocator:
    """One device. capacity: bytes that may be reserved, None for no limit. expandable: expandable_segments."""

    capacity: int | None = None
    expandable: bool = False
    allocated: int = 0
    reserved: int = 0
    peak_allocated: int = 0
    peak_reserved: int = 0
    retries: int = 0
    _free: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: {"small": [], "large": []})
    _blocks: dict[int, _Block] = field(default_factory=dict)
    _live: dict[int, int] = field(default_factory=dict)
    _segments: dict[int, int] = field(default_factory=dict)
    _next: int = 1 << 40
    _tail: dict[str, int] = field(default_factory=dict)  # expandable: the last block of each pool's range

    def allocate(self, name: int, size: int) -> None:
        """Take `size` bytes under a name. Raises OutOfMemory."""
        size = max(BLOCK, -(-size // BLOCK) * BLOCK)
        pool = "small" if size <= SMALL else "large"
        address = self._find(pool, size)
        if address is None:
            address = self._grow(pool, size) if self.expandable else self._new_segment(pool, size)
        block = self._blocks[address]
        left = block.size - size
        if left >= BLOCK and (pool == "small" or self.expandable or left > SMALL):
            self._split(address, size)
        block.free = False
        self._live[name] = address
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)

    def free(self, name: int) -> None:
        """Give back what was taken under a name; its neighbours merge with it where they are free."""
        address = self._live.pop(name)
        block = self._blocks[address]
        self.allocated -= block.size
        block.free = True
        if block.after is not None and self._blocks[block.after].free:
            self._remove(block.after)
            self._join(address, block.after)
        if block.before is not None and self._blocks[block.before].free:
            before = block.before
            self._remove(before)
            self._join(before, address)
            address, block = before, self._blocks[before]
        bisect.insort(self._free[block.pool], (block.size, address))

    def reset_peaks(self) -> None:
        """What torch.cuda.reset_peak_memory_stats does."""
        self.peak_allocated, self.peak_reserved = self.allocated, self.reserved

    def replay(self, events: Iterable[tuple[int, int]]) -> Allocator:
        """Run events: (name, bytes) allocates, (name, 0) frees. Raises OutOfMemory where the device would."""
        for name, size in events:
            if size:
                self.allocate(name, size)
            else:
                self.free(name)
        return self

    def _find(self, pool: str, size: int) -> int | None:
        free = self._free[pool]
        at = bisect.bisect_left(free, (size, -1))
        if self.expandable and at + 1 < len(free) and free[at][1] == self._tail.get(pool):
            at += 1  # the end can still grow: it counts as larger than any other
        return free.pop(at)[1] if at < len(free) else None

    def _reserve(self, lacking: Callable[[], int], wanted: int) -> int:
        """Reserve what lacks and return it. Giving back free memory may change what lacks."""
        size = lacking()
        if self.capacity is not None and self.reserved + size > self.capacity:
            self.retries += 1
            self._release_free_segments()
            size = lacking()
            if self.reserved + size > self.capacity:
                raise OutOfMemory(
                    f"tried to allocate {wanted / 2**20:,.2f} MiB; capacity {self.capacity / 2**30:,.2f} GiB,"
                    f" allocated {self.allocated / 2**30:,.2f} GiB, reserved but unallocated"
                    f" {(self.reserved - self.allocated) / 2**20:,.2f} MiB"
                )
        self.reserved += size
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        return size

    def _new_segment(self, pool: str, size: int) -> int:
        if pool == "small":
            segment = SMALL_SEGMENT
        elif size < OWN_SEGMENT:
            segment = LARGE_SEGMENT
        else:
            segment = -(-size // PAGE) * PAGE
        self._reserve(lambda: segment, size)
        address = self._next
        self._next += segment + _APART
        self._segments[address] = segment
        self._blocks[address] = _Block(segment, address, pool)
        return address

    def _grow(self, pool: str, size: int) -> int:
        """Expandable segments: map as many further pages as the free end of the range lacks."""
        page = SMALL_SEGMENT if pool == "small" else LARGE_SEGMENT

        def lacking() -> int:
            tail = self._tail.get(pool)
            end = self._blocks[tail].size if tail is not None and self._blocks[tail].free else 0
            return -(-(size - end) // page) * page

        more = self._reserve(lacking, size)
        tail = self._tail.get(pool)
        if tail is not None and self._blocks[tail].free:
            self._remove(tail)
            self._blocks[tail].size += more
            return tail
        if tail is None:
            address, before = self._next, None
            self._next += 1 << 50
        else:
            address, before = tail + self._blocks[tail].size, tail
            self._blocks[tail].after = address
        self._blocks[address] = _Block(more, 0, pool, before=before)
        self._tail[pool] = address
        return address

    def _split(self, address: int, size: int) -> None:
        block = self._blocks[address]
        rest = address + size
        self._blocks[rest] = _Block(block.size - size, block.segment, block.pool, before=address, after=block.after)
        if block.after is not None:
            self._blocks[block.after].before = rest
        elif self._tail.get(block.pool) == address:
            self._tail[block.pool] = rest
        block.size, block.after = size, rest
        bisect.insort(self._free[block.pool], (self._blocks[rest].size, rest))

    def _join(self, address: int, after: int) -> None:
        block, gone = self._blocks[address], self._blocks.pop(after)
        block.size, block.after = block.size + gone.size, gone.after
        if gone.after is not None:
            self._blocks[gone.after].before = address
        elif self._tail.get(block.pool) == after:
            self._tail[block.pool] = address

    def _remove(self, address: int) -> None:
        block = self._blocks[address]
        self._free[block.pool].remove((block.size, address))

    def _release_free_segments(self) -> None:
        if self.expandable:
            return self._unmap_free_pages()
        for pool, free in self._free.items():
            for size, address in list(free):
                block = self._blocks[address]
                if block.before is None and block.after is None:
                    self._free[pool].remove((size, address))
                    del self._blocks[address]
                    self.reserved -= self._segments.pop(address)
        return None

    def _unmap_free_pages(self) -> None:
        """Expandable segments: the free end of a range is unmapped. Free pages inside it stay: slightly too much."""
        for pool, tail in list(self._tail.items()):
            block = self._blocks[tail]
            if block.free:
                self._remove(tail)
                page = SMALL_SEGMENT if pool == "small" else LARGE_SEGMENT
                back = block.size // page * page
                self.reserved -= back
                block.size -= back
                if block.size:
                    bisect.insort(self._free[pool], (block.size, tail))
                else:
                    del self._blocks[tail]
                    if block.before is None:
                        del self._tail[pool]
                    else:
                        self._tail[pool] = block.before
                        self._blocks[block.before].after = None
