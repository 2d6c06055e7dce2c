"""The model of PyTorch's caching allocator: its rules on cases worked by hand, and on random ones by a slow double."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing_xlsx.measure.allocator import MIB, Allocator, OutOfMemory

KIB = 1024


def used(allocator: Allocator) -> tuple[int, int]:
    """Bytes allocated and reserved."""
    return allocator.allocated, allocator.reserved


# -- worked by hand: one request


@pytest.mark.parametrize(
    ("asked", "block", "segment"),
    [
        (1, 512, 2 * MIB),
        (512, 512, 2 * MIB),
        (513, 1024, 2 * MIB),
        (MIB - 1, MIB, 2 * MIB),
        (MIB, MIB, 2 * MIB),  # the largest of the small pool
        (MIB + 1, MIB + 512, 20 * MIB),
        (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
        (10 * MIB - 511, 10 * MIB, 10 * MIB),  # rounded first, then a segment of its own
        (10 * MIB, 10 * MIB, 10 * MIB),
        (10 * MIB + 1, 10 * MIB + 512, 12 * MIB),  # in steps of 2 MiB, of which the unused is split off
        (64_000_000, 62 * MIB, 62 * MIB),  # but not where it is less than 1 MiB
        (5_000_000_000, 5_000_000_000, 4770 * MIB),
    ],
)
def test_what_one_request_takes(asked: int, block: int, segment: int) -> None:
    allocator = Allocator().replay([(0, asked)])
    assert used(allocator) == (block, segment)
    assert (allocator.peak_allocated, allocator.peak_reserved) == (block, segment)
    assert used(allocator.replay([(0, 0)])) == (0, segment), "a freed segment stays reserved"


def test_a_request_for_nothing_takes_a_block() -> None:
    allocator = Allocator()
    allocator.allocate(0, 0)
    assert used(allocator) == (512, 2 * MIB)


# -- worked by hand: sharing, splitting, merging, choosing


def test_small_requests_share_segments_of_2_mib_to_the_last_block() -> None:
    full = Allocator().replay([(at, 512) for at in range(4096)])
    assert used(full) == (2 * MIB, 2 * MIB)
    assert used(full.replay([(4096, 1)])) == (2 * MIB + 512, 4 * MIB)


def test_small_and_large_requests_never_share() -> None:
    allocator = Allocator().replay([(0, 3 * MIB), (1, 512)])
    assert used(allocator) == (3 * MIB + 512, 22 * MIB)


def test_requests_below_10_mib_share_segments_of_20_mib() -> None:
    allocator = Allocator().replay([(0, 9 * MIB), (1, 9 * MIB)])
    assert used(allocator) == (18 * MIB, 20 * MIB)
    assert used(allocator.replay([(2, 3 * MIB)])) == (21 * MIB, 40 * MIB), "2 MiB were left"


def test_a_small_block_is_split_even_where_only_512_bytes_are_left() -> None:
    allocator = Allocator().replay([(0, MIB), (1, MIB - 512)])
    assert used(allocator) == (2 * MIB - 512, 2 * MIB)
    assert used(allocator.replay([(2, 512)])) == (2 * MIB, 2 * MIB)


def test_a_large_block_is_split_only_where_more_than_1_mib_is_left() -> None:
    whole = Allocator().replay([(0, 11 * MIB), (0, 0), (1, 11 * MIB)])
    assert used(whole) == (12 * MIB, 12 * MIB), "1 MiB left of the 12 is handed out with it"
    split = Allocator().replay([(0, 11 * MIB), (0, 0), (1, 11 * MIB - 512)])
    assert used(split) == (11 * MIB - 512, 12 * MIB)
    assert used(split.replay([(2, MIB + 512)])) == (12 * MIB, 12 * MIB), "and what is left serves another"


def test_a_freed_block_merges_with_both_neighbours() -> None:
    three = [(0, 6 * MIB), (1, 6 * MIB), (2, 6 * MIB)]  # and 2 MiB at the end of 20
    for order in ((0, 2, 1), (1, 0, 2), (2, 1, 0)):
        allocator = Allocator().replay(three).replay([(name, 0) for name in order])
        assert used(allocator.replay([(3, 20 * MIB)])) == (20 * MIB, 20 * MIB), f"freed in the order {order}"


def test_a_live_block_keeps_its_neighbours_apart() -> None:
    allocator = Allocator().replay([(0, 6 * MIB), (1, 6 * MIB), (2, 6 * MIB), (0, 0), (2, 0)])
    assert used(allocator.replay([(3, 8 * MIB)])) == (14 * MIB, 20 * MIB), "the last 6 and the 2 behind it"
    assert used(allocator.replay([(4, 8 * MIB)])) == (22 * MIB, 40 * MIB), "6 MiB before and after do not make 8"


def test_segments_that_lie_side_by_side_never_merge() -> None:
    allocator = Allocator().replay([(0, 10 * MIB), (1, 10 * MIB), (0, 0), (1, 0), (2, 20 * MIB)])
    assert used(allocator) == (20 * MIB, 40 * MIB)


def test_the_smallest_block_that_fits_is_taken() -> None:
    allocator = Allocator().replay([(0, 30 * MIB), (1, 16 * MIB), (2, 22 * MIB), (0, 0), (1, 0), (2, 0)])
    allocator.replay([(3, 20 * MIB), (4, 30 * MIB), (5, 16 * MIB)])
    assert allocator.reserved == 68 * MIB, "20 went into 22, so that 30 and 16 find their own again"
    assert allocator.allocated == 66 * MIB, "the 2 MiB left of the 22 are split off"


def test_the_articles_peak_is_above_what_lives_at_the_end() -> None:
    allocator = Allocator().replay([(0, 100 * MIB), (1, 50 * MIB), (0, 0), (2, 60 * MIB)])
    assert used(allocator) == (110 * MIB, 150 * MIB)
    assert (allocator.peak_allocated, allocator.peak_reserved) == (150 * MIB, 150 * MIB)
    allocator.reset_peaks()
    assert (allocator.peak_allocated, allocator.peak_reserved) == (110 * MIB, 150 * MIB)


# -- worked by hand: a full device


def test_wholly_free_segments_are_given_back_before_it_is_out_of_memory() -> None:
    allocator = Allocator(capacity=100 * MIB).replay([(0, 60 * MIB), (1, 20 * MIB), (0, 0)])
    assert used(allocator) == (20 * MIB, 80 * MIB) and allocator.retries == 0
    assert used(allocator.replay([(2, 70 * MIB)])) == (90 * MIB, 90 * MIB)
    assert allocator.retries == 1 and allocator.peak_reserved == 90 * MIB


def test_a_segment_with_one_live_block_is_not_given_back() -> None:
    allocator = Allocator(capacity=40 * MIB).replay([(0, 2 * MIB), (1, 9 * MIB), (1, 0)])
    assert used(allocator) == (2 * MIB, 20 * MIB)
    with pytest.raises(OutOfMemory):
        allocator.allocate(2, 22 * MIB)
    assert used(allocator) == (2 * MIB, 20 * MIB) and allocator.retries == 1


def test_free_segments_of_both_pools_are_given_back() -> None:
    allocator = Allocator(capacity=24 * MIB).replay([(0, 512), (1, 3 * MIB), (0, 0), (1, 0)])
    assert allocator.reserved == 22 * MIB
    assert used(allocator.replay([(2, 24 * MIB)])) == (24 * MIB, 24 * MIB)


def test_the_last_byte_may_be_reserved() -> None:
    assert Allocator(capacity=20 * MIB).replay([(0, 20 * MIB)]).reserved == 20 * MIB
    with pytest.raises(OutOfMemory):
        Allocator(capacity=20 * MIB - 1).replay([(0, 20 * MIB)])


def test_out_of_memory_says_what_was_asked_and_what_there_was() -> None:
    allocator = Allocator(capacity=2 * 1024 * MIB).replay([(0, 1536 * MIB), (1, 9 * MIB)])
    with pytest.raises(OutOfMemory) as caught:
        allocator.allocate(2, 1024 * MIB)
    assert str(caught.value) == (
        "tried to allocate 1,024.00 MiB; capacity 2.00 GiB, allocated 1.51 GiB, reserved but unallocated 11.00 MiB"
    )


def test_it_goes_on_after_it_was_out_of_memory() -> None:
    allocator = Allocator(capacity=40 * MIB).replay([(0, 30 * MIB)])
    with pytest.raises(OutOfMemory):
        allocator.allocate(1, 30 * MIB)
    allocator.replay([(0, 0), (1, 30 * MIB)])
    assert used(allocator) == (30 * MIB, 30 * MIB)


# -- worked by hand: expandable segments


def test_expandable_each_pool_is_one_range_that_grows_by_pages() -> None:
    allocator = Allocator(expandable=True).replay([(0, 1)])
    assert used(allocator) == (512, 2 * MIB)
    assert used(allocator.replay([(1, 3 * MIB)])) == (3 * MIB + 512, 22 * MIB)
    assert used(allocator.replay([(2, 15 * MIB)])) == (18 * MIB + 512, 22 * MIB)
    assert used(allocator.replay([(3, 30 * MIB)])) == (48 * MIB + 512, 62 * MIB), "2 MiB free; two pages for the rest"


def test_expandable_a_range_splits_even_where_little_is_left() -> None:
    allocator = Allocator(expandable=True).replay([(0, 19 * MIB + 512), (1, MIB + 512)])
    assert allocator.reserved == 40 * MIB
    allocator = Allocator(expandable=True).replay([(0, 18 * MIB), (1, 2 * MIB - 512)])
    assert used(allocator) == (20 * MIB - 512, 20 * MIB)


def test_expandable_freed_requests_of_any_size_become_one() -> None:
    pieces = [(at, 30 * MIB) for at in range(4)]
    events = [*pieces, *[(at, 0) for at in range(4)], (9, 120 * MIB)]
    assert Allocator(expandable=True).replay(events).reserved == 120 * MIB
    assert Allocator().replay(events).reserved == 240 * MIB


def test_expandable_the_end_of_a_range_is_taken_last() -> None:
    """PyTorch takes a free block inside the range before the end, which could still grow ("best fit" by what it
    can expand to)."""
    allocator = Allocator(expandable=True).replay([(0, 6 * MIB), (1, 10 * MIB), (0, 0)])  # free: 6 MiB, the end 4 MiB
    allocator.replay([(2, 3 * MIB), (3, 24 * MIB)])
    assert used(allocator) == (37 * MIB, 40 * MIB), "3 MiB went inside: the end and one page hold 24"


def test_expandable_a_full_device_takes_back_the_free_end() -> None:
    allocator = Allocator(capacity=60 * MIB, expandable=True).replay([(0, 10 * MIB), (1, 40 * MIB), (1, 0)])
    assert used(allocator) == (10 * MIB, 60 * MIB)
    assert used(allocator.replay([(2, 512)])) == (10 * MIB + 512, 22 * MIB)
    assert allocator.retries == 1
    assert used(allocator.replay([(3, 25 * MIB)])) == (35 * MIB + 512, 42 * MIB)


def test_expandable_a_request_that_takes_back_its_own_range() -> None:
    """40 MiB are free; with 30 more a request for 70 would reserve 80 of 50: out of memory, with or without them."""
    allocator = Allocator(capacity=50 * MIB, expandable=True).replay([(0, 40 * MIB), (0, 0)])
    with pytest.raises(OutOfMemory):
        allocator.allocate(1, 70 * MIB)
    assert allocator.allocated == 0 and allocator.reserved <= 50 * MIB
    assert used(allocator.replay([(2, 40 * MIB)])) == (40 * MIB, 40 * MIB)


# -- any sequence


class Slow:
    """The native rules once more, with nothing but lists that are searched from end to end.

    A segment is [pool, blocks]; a block is [size, name], where name is None while it is free.
    """

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.segments: list[tuple[str, list[list[Any]]]] = []

    @property
    def allocated(self) -> int:
        return sum(size for _, blocks in self.segments for size, name in blocks if name is not None)

    @property
    def reserved(self) -> int:
        return sum(size for _, blocks in self.segments for size, _ in blocks)

    def allocate(self, name: int, asked: int) -> None:
        size = 512
        while size < asked:
            size += 512
        pool = "small" if size <= 1_048_576 else "large"
        fits = [
            (block[0], segment, place)
            for segment, (kind, blocks) in enumerate(self.segments)
            for place, block in enumerate(blocks)
            if kind == pool and block[1] is None and block[0] >= size
        ]
        if fits:
            _, segment, place = min(fits)
        else:
            self.open(pool, size)
            segment, place = len(self.segments) - 1, 0
        blocks = self.segments[segment][1]
        rest = blocks[place][0] - size
        if (pool == "small" and rest >= 512) or rest > 1_048_576:
            blocks[place : place + 1] = [[size, name], [rest, None]]
        else:
            blocks[place][1] = name

    def open(self, pool: str, size: int) -> None:
        wanted = 2_097_152 if pool == "small" else 20_971_520
        if size >= 10_485_760:
            wanted = (size + 2_097_151) // 2_097_152 * 2_097_152
        if self.capacity is not None and self.reserved + wanted > self.capacity:
            self.segments = [found for found in self.segments if any(name is not None for _, name in found[1])]
            if self.reserved + wanted > self.capacity:
                raise OutOfMemory
        self.segments.append((pool, [[wanted, None]]))

    def free(self, name: int) -> None:
        for _, blocks in self.segments:
            merged: list[list[Any]] = []
            for block in blocks:
                if block[1] == name:
                    block[1] = None
                if merged and block[1] is None and merged[-1][1] is None:
                    merged[-1][0] += block[0]
                else:
                    merged.append(block)
            blocks[:] = merged


# A number above 0 asks for bytes; one of 0 or less frees one of what is alive. Around every border of the rules.
SIZES = st.one_of(
    st.integers(1, 8 * KIB),
    st.integers(MIB - 2 * KIB, MIB + 2 * KIB),
    st.integers(1, 24 * MIB),
    st.integers(10 * MIB - 2 * KIB, 10 * MIB + 2 * KIB),
    st.integers(1, 70).map(lambda count: count * MIB),
)
EVENTS = st.lists(st.one_of(SIZES, SIZES, st.integers(-1000, 0)), max_size=60)
CAPACITIES = st.sampled_from([None, 20 * MIB, 48 * MIB, 100 * MIB])


def resolved(numbers: list[int]) -> list[tuple[int, int]]:
    """The events that these numbers stand for, as replay() takes them."""
    alive: list[int] = []
    events: list[tuple[int, int]] = []
    for number in numbers:
        if number > 0:
            alive.append(len(events))
            events.append((len(events), number))
        elif alive:
            events.append((alive.pop(number % len(alive)), 0))
    return events


@settings(max_examples=200, deadline=None)
@given(EVENTS, CAPACITIES)
def test_it_agrees_with_the_slow_double_after_every_event(numbers: list[int], capacity: int | None) -> None:
    fast, slow = Allocator(capacity), Slow(capacity)
    refused: set[int] = set()
    for name, size in resolved(numbers):
        if name in refused:
            continue
        try:
            slow.allocate(name, size) if size else slow.free(name)
        except OutOfMemory:
            refused.add(name)
            with pytest.raises(OutOfMemory):
                fast.allocate(name, size)
        else:
            fast.replay([(name, size)])
        assert used(fast) == (slow.allocated, slow.reserved)


@settings(max_examples=150, deadline=None)
@given(EVENTS, CAPACITIES, st.booleans())
def test_what_always_holds(numbers: list[int], capacity: int | None, expandable: bool) -> None:
    allocator = Allocator(capacity, expandable)
    alive: dict[int, int] = {}  # name -> bytes asked for
    peaks = (0, 0)
    for name, size in resolved(numbers):
        if size:
            try:
                allocator.allocate(name, size)
            except OutOfMemory:
                assert capacity is not None
                continue
            alive[name] = size
        elif name in alive:
            allocator.free(name)
            del alive[name]

        spans = sorted((at, at + allocator._blocks[at].size) for at in (allocator._live[key] for key in alive))
        assert allocator.allocated == sum(end - start for start, end in spans)
        assert all(end <= after for (_, end), (after, _) in itertools.pairwise(spans)), "live blocks overlap"
        for key, asked in alive.items():
            granted = allocator._blocks[allocator._live[key]].size
            rounded = -(-asked // 512) * 512
            assert granted % 512 == 0 and rounded <= granted <= rounded + (MIB if asked > MIB and not expandable else 0)

        assert allocator.allocated <= allocator.reserved <= (capacity or allocator.reserved)
        assert allocator.reserved % (2 * MIB) == 0
        now = (allocator.peak_allocated, allocator.peak_reserved)
        assert now >= peaks and now[0] >= allocator.allocated and now[1] >= allocator.reserved
        assert now[1] >= peaks[1]
        peaks = now

    for name in alive:
        allocator.free(name)
    assert allocator.allocated == 0
    allocator.capacity = allocator.reserved
    with pytest.raises(OutOfMemory):
        allocator.allocate(-1, 1 << 50)
    assert used(allocator) == (0, 0), "nothing is alive, so everything was given back"


@settings(max_examples=50, deadline=None)
@given(EVENTS)
def test_a_device_that_is_large_enough_changes_nothing(numbers: list[int]) -> None:
    events = resolved(numbers)
    for expandable in (False, True):
        free = Allocator(expandable=expandable).replay(events)
        tight = Allocator(free.peak_reserved, expandable).replay(events)
        assert used(tight) == used(free) and tight.retries == 0
