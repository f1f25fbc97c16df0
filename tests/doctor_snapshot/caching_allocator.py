"""A small model of PyTorch's CUDA caching allocator that records what torch.cuda.memory._snapshot() shows.

Sizes, rounding, splitting, pools, streams, expandable segments and the order of events follow the documentation of the
allocator (docs/source/notes/cuda.rst, torch_cuda_memory.rst) and the fields of torch.cuda.memory._snapshot. The model counts
every byte itself, so that a reader's replay can be checked against it. Standard library only.
"""
KIB, MIB = 1 << 10, 1 << 20
UNIT = 512                      # blocks are multiples of this
SMALL = MIB                     # larger requests come from the large pool
SMALL_SEGMENT, LARGE_SEGMENT = 2 * MIB, 20 * MIB
OWN_SEGMENT = 10 * MIB          # larger requests get segments of their own size, rounded up to 2 MiB
DEFAULT_POOL = (0, 0)


class OutOfMemory(Exception):
    pass


class Block:
    def __init__(self, address, size):
        self.address, self.size = address, size
        self.state, self.requested, self.frames = 'inactive', 0, []


class Segment:
    def __init__(self, address, stream, small, pool, expandable):
        self.address, self.stream, self.small, self.pool, self.expandable = address, stream, small, pool, expandable
        self.blocks = []        # by address; an expandable segment also has unmapped ones (state None)


class Device:
    """One device's allocator. `series` holds (allocated, reserved, {place: bytes}) after each event."""

    def __init__(self, number, capacity, expandable=False, has_times=True):
        self.number, self.capacity, self.expandable, self.has_times = number, capacity, expandable, has_times
        self.segments, self.events, self.series, self.pending, self.live = [], [], [], [], []
        self.allocated = self.reserved = 0
        self.places, self.next_address = {}, 0x7f0000000000 + number * 0x1000000000
        self.time_us, self.pool, self.failures = 1_700_000_000_000_000, DEFAULT_POOL, []

    # --- events ---
    def record(self, action, address, size, stream, frames=None):
        self.time_us += 137
        event = {'action': action, 'device_free' if action == 'oom' else 'addr': address, 'size': size, 'stream': stream}
        if frames is not None:
            event['frames'] = frames
        if self.has_times:
            event['time_us'] = self.time_us
        self.events.append(event)
        self.series.append((self.allocated, self.reserved, dict(self.places)))

    # --- allocating ---
    def malloc(self, size, frames, place, stream=0):
        rounded = max(UNIT, -(-size // UNIT) * UNIT)
        small = rounded <= SMALL
        found = self.best_fit(rounded, stream, small) or self.grow(rounded, stream, small, frames)
        if not found:
            self.release_cached()
            found = self.best_fit(rounded, stream, small) or self.grow(rounded, stream, small, frames)
        if not found:
            self.record('oom', self.capacity - self.reserved, rounded, stream, frames)
            self.failures.append((len(self.events) - 1, dict(self.fragmentation(rounded, stream), place=place)))
            raise OutOfMemory()
        segment, block = found
        self.split(segment, block, rounded)
        block.state, block.requested, block.frames, block.place = 'active_allocated', size, frames, place
        self.allocated += size
        self.places[place] = self.places.get(place, 0) + size
        self.record('alloc', block.address, size, stream, frames)
        self.live.append((segment, block))
        return (segment, block)

    def best_fit(self, size, stream, small):
        fitting = [(b.size, b.address, s, b) for s in self.segments
                   if (s.stream, s.small, s.pool) == (stream, small, self.pool)
                   for b in s.blocks if b.state == 'inactive' and b.size >= size]
        return min(fitting, key=lambda f: f[:2])[2:] if fitting else None

    def grow(self, size, stream, small, frames):
        if self.expandable and self.pool == DEFAULT_POOL:
            return self.expand(size, stream, small, frames)
        total = SMALL_SEGMENT if small else LARGE_SEGMENT if size < OWN_SEGMENT else -(-size // (2 * MIB)) * 2 * MIB
        if self.reserved + total > self.capacity:
            return None
        segment = Segment(self.next_address, stream, small, self.pool, False)
        self.next_address += total
        segment.blocks = [Block(segment.address, total)]
        self.segments.append(segment)
        self.reserved += total
        self.record('segment_alloc', segment.address, total, stream, frames)
        return segment, segment.blocks[0]

    def expand(self, size, stream, small, frames):
        segment = next((s for s in self.segments if s.expandable and (s.stream, s.small) == (stream, small)), None)
        if segment is None:
            segment = Segment(self.next_address, stream, small, DEFAULT_POOL, True)
            self.next_address += 64 << 30
            segment.blocks = [Block(segment.address, 64 << 30)]
            segment.blocks[0].state = None
            self.segments.append(segment)
        page = SMALL_SEGMENT if small else LARGE_SEGMENT
        hole = next(i for i, b in enumerate(segment.blocks) if b.state is None and b.size >= size)
        before = segment.blocks[hole - 1] if hole and segment.blocks[hole - 1].state == 'inactive' else None
        wanted = -(-(size - (before.size if before else 0)) // page) * page
        if self.reserved + wanted > self.capacity:
            return None
        unmapped = segment.blocks[hole]
        mapped = Block(unmapped.address, wanted)
        unmapped.address, unmapped.size = unmapped.address + wanted, unmapped.size - wanted
        segment.blocks.insert(hole, mapped)
        self.reserved += wanted
        self.record('segment_map', mapped.address, wanted, stream, frames)
        if before:
            before.size += mapped.size
            segment.blocks.remove(mapped)
        return segment, before or mapped

    def split(self, segment, block, size):
        left = block.size - size
        if left < UNIT or (not segment.small and not segment.expandable and left <= SMALL):
            return
        block.size = size
        segment.blocks.insert(segment.blocks.index(block) + 1, Block(block.address + size, left))

    # --- freeing ---
    def free(self, handle, used_by_other_stream=False):
        segment, block = handle
        self.record('free_requested', block.address, block.requested, segment.stream, [])
        if used_by_other_stream:
            block.state = 'active_pending_free'
            self.pending.append(handle)
        else:
            self.complete(handle)

    def complete(self, handle):
        segment, block = handle
        self.live = [h for h in self.live if h[1] is not block]
        self.allocated -= block.requested
        self.places[block.place] -= block.requested
        self.record('free_completed', block.address, block.requested, segment.stream, [])
        block.state, block.requested, block.frames = 'inactive', 0, []
        self.merge(segment)

    def synchronize(self):
        for handle in self.pending:
            self.complete(handle)
        self.pending = []

    def merge(self, segment):
        merged = []
        for block in segment.blocks:
            if merged and block.state in ('inactive', None) and merged[-1].state == block.state:
                merged[-1].size += block.size
            else:
                merged.append(block)
        segment.blocks = merged

    def release_cached(self):
        for segment in list(self.segments):
            if segment.pool != DEFAULT_POOL:
                continue
            if segment.expandable:
                self.unmap(segment)
            elif all(b.state == 'inactive' for b in segment.blocks):
                self.segments.remove(segment)
                total = sum(b.size for b in segment.blocks)
                self.reserved -= total
                self.record('segment_free', segment.address, total, segment.stream)

    def unmap(self, segment):
        page = SMALL_SEGMENT if segment.small else LARGE_SEGMENT
        for block in [b for b in segment.blocks if b.state == 'inactive']:
            first = segment.address + -(-(block.address - segment.address) // page) * page
            last = segment.address + (block.address + block.size - segment.address) // page * page
            if last <= first:
                continue
            at = segment.blocks.index(block)
            parts = [Block(block.address, first - block.address), Block(first, last - first),
                     Block(last, block.address + block.size - last)]
            parts[1].state = None
            segment.blocks[at:at + 1] = [p for p in parts if p.size]
            self.reserved -= last - first
            self.record('segment_unmap', first, last - first, segment.stream)
        self.merge(segment)

    # --- the true state ---
    def fragmentation(self, request, stream):
        inactive = [(s, b) for s in self.segments for b in s.blocks if b.state == 'inactive']
        return {'inactive_bytes': sum(b.size for _, b in inactive),
                'largest_inactive_bytes': max([b.size for _, b in inactive], default=0),
                'inactive_blocks': len(inactive), 'requested_bytes': request, 'stream': stream,
                'device_free_bytes': self.capacity - self.reserved, 'allocated_bytes': self.allocated,
                'reserved_bytes': self.reserved}

    def mapped_ranges(self):
        """(segment, [blocks]) for each contiguous mapped range, as the snapshot lists segments."""
        for segment in self.segments:
            run = []
            for block in segment.blocks + [None]:
                if block is None or block.state is None:
                    if run:
                        yield segment, run
                    run = []
                else:
                    run.append(block)
