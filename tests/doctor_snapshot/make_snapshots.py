#!/usr/bin/env python3
"""Writes small memory snapshots with the structure of PyTorch 1.13 to 2.12, and the true values for them.

Usage: make_snapshots.py FOLDER            the pickles and truth.json that the tests read
       make_snapshots.py --large FILE N    one snapshot of about N events

The allocations come from caching_allocator.py, a model of the caching allocator, run by a toy training loop; the true values
are the model's own counts. Standard library only; the output is the same on every machine.
"""
import json
import os
import pickle
import sys

from caching_allocator import DEFAULT_POOL, KIB, MIB, Device, OutOfMemory

HOME = '/home/user/project/'
PACKAGES = '/home/user/env/lib/python3.11/site-packages/'
TORCH = PACKAGES + 'torch/'


def frame(filename, line, name):
    return {'name': name, 'filename': filename, 'line': line}


# One object per frame and per stack, as PyTorch shares them.
TRAIN = frame(HOME + 'train.py', 88, 'train')
MODULE = frame(TORCH + 'nn/modules/module.py', 1751, '_call_impl')
STACKS = {
    'weights': [frame(TORCH + 'nn/modules/module.py', 1326, 'convert'), frame(TORCH + 'nn/modules/module.py', 915, '_apply'),
                frame(HOME + 'train.py', 31, 'build_model')],
    'batch': [frame(HOME + 'data.py', 17, 'move_to_device'), TRAIN],
    'attention': [frame(TORCH + 'nn/functional.py', 1888, 'linear'), MODULE, frame(HOME + 'model.py', 41, 'forward'), MODULE,
                  TRAIN],
    'mlp': [frame(TORCH + 'nn/modules/activation.py', 701, 'forward'), MODULE, frame(HOME + 'model.py', 63, 'forward'), MODULE,
            TRAIN],
    'loss': [frame(TORCH + 'nn/functional.py', 3479, 'cross_entropy'), frame(HOME + 'train.py', 52, 'loss_of'), TRAIN],
    'backward': [],
    'states': [frame(TORCH + 'optim/adamw.py', 173, '_init_group'), frame(TORCH + 'optim/adamw.py', 232, 'step'),
               frame(TORCH + 'optim/optimizer.py', 493, 'wrapper'), TRAIN],
    'step': [frame(TORCH + 'optim/adamw.py', 620, '_multi_tensor_adamw'), frame(TORCH + 'optim/adamw.py', 243, 'step'),
             frame(TORCH + 'optim/optimizer.py', 493, 'wrapper'), TRAIN],
    'recompute': [frame(HOME + 'model.py', 41, 'forward'), MODULE, frame(TORCH + 'utils/checkpoint.py', 1124, 'unpack_hook'),
                  frame(TORCH + 'autograd/graph.py', 825, '_engine_run_backward'), TRAIN],
    'metrics': [frame(HOME + 'train.py', 97, 'remember'), TRAIN],
    'graph': [frame(HOME + 'serve.py', 12, 'capture')],
}
NATIVE = [frame('/build/c10/cuda/CUDACachingAllocator.cpp', 0, 'c10::cuda::CUDACachingAllocator::Native::malloc(unsigned long)'),
          frame('/build/aten/src/ATen/EmptyTensor.cpp', 0, 'at::detail::empty_generic(c10::ArrayRef<long>)')]
STACKS['native backward'] = NATIVE + [
    frame('??', 0, 'torch::autograd::generated::MulBackward0::apply(std::vector<at::Tensor>&&)'),
    frame('??', 0, 'torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)')]
STACKS['native forward'] = NATIVE + STACKS['attention']


def train(device, steps, layers=3, width=3 * MIB, leak=0, backward='backward', forward='attention', recompute=False):
    """A toy training loop; returns what is alive. Sizes differ by layer so that blocks split and merge."""
    weights = [device.malloc(width + 4 * KIB * i, STACKS['weights'], 'weights') for i in range(layers)]
    alive, states = weights, []
    for step in range(steps):
        batch = device.malloc(96 * KIB + 8 * step, STACKS['batch'], 'batch')
        saved = []
        for layer in range(layers):
            saved.append(device.malloc(2 * width + 12 * KIB * layer + 100, STACKS[forward], 'attention'))
            if not recompute:
                saved.append(device.malloc(width // 2, STACKS['mlp'], 'mlp'))
        logits = device.malloc(5 * width + 100, STACKS['loss'], 'loss')
        gradients = []
        for layer in reversed(range(layers)):
            if recompute:
                again = device.malloc(width // 2, STACKS['recompute'], 'recompute')
            gradients.append(device.malloc(width + 4 * KIB * layer, STACKS[backward], 'backward'))
            temporary = device.malloc(width, STACKS[backward], 'backward')
            device.free(saved.pop())
            if recompute:
                device.free(again)
            elif saved:
                device.free(saved.pop())
            device.free(temporary, used_by_other_stream=layer == 1)
        device.free(logits)
        device.synchronize()
        if not states:
            states = [device.malloc(width + 4 * KIB * i, STACKS['states'], 'states') for i in range(layers) for _ in 'mv']
        scratch = [device.malloc(width, STACKS['step'], 'step') for _ in range(layers)]
        for handle in scratch + gradients + [batch]:
            device.free(handle)
        if leak:
            alive.append(device.malloc(leak, STACKS['metrics'], 'metrics'))
    return alive + states


def serve_graphs(device):
    """Blocks in a CUDA graph's private pool, and ordinary ones."""
    kept = [device.malloc(4 * MIB, STACKS['weights'], 'weights')]
    device.pool = (0, 1)
    kept += [device.malloc(size * MIB, STACKS['graph'], 'graph') for size in (3, 7)]
    device.free(device.malloc(2 * MIB, STACKS['graph'], 'graph'))
    device.pool = DEFAULT_POOL
    return kept


# --- the structures of different versions ---
def block_fields(block, version):
    out = {'size': block.size, 'state': block.state}
    if version >= (2, 1):
        out = {'address': block.address, 'size': block.size, 'requested_size': block.requested, 'state': block.state,
               'frames': block.frames}
    elif block.state != 'inactive' and version >= (1, 13):
        out['history'] = [{'addr': block.address, 'real_size': block.requested, 'frames': block.frames}]
    return out


def segments_of(device, version):
    out = []
    for segment, blocks in device.mapped_ranges():
        used = [b for b in blocks if b.state == 'active_allocated']
        active = [b for b in blocks if b.state != 'inactive']
        fields = {'device': device.number, 'address': blocks[0].address, 'total_size': sum(b.size for b in blocks),
                  'allocated_size': sum(b.size for b in used), 'active_size': sum(b.size for b in active)}
        if version >= (2, 1):
            fields['requested_size'] = sum(b.requested for b in used)
        if version >= (1, 13):
            fields['stream'] = segment.stream
        fields['segment_type'] = 'small' if segment.small else 'large'
        if version >= (2, 1):
            fields.update(segment_pool_id=segment.pool, is_expandable=segment.expandable, frames=[])
        fields['blocks'] = [block_fields(b, version) for b in blocks]
        out.append(fields)
    return out


def event_fields(event, version):
    out = dict(event)
    if version >= (2, 9):
        out.update(compile_context='N/A', user_metadata='', pool_id=DEFAULT_POOL)
    return out


def snapshot_of(devices, version, first_event=0, annotations=()):
    out = {'segments': [s for d in devices for s in segments_of(d, version)],
           'device_traces': [[event_fields(e, version) for e in d.events[first_event:]] for d in devices]}
    if version >= (2, 1):
        out['allocator_settings'] = {
            'PYTORCH_CUDA_ALLOC_CONF': 'expandable_segments:True' if devices[0].expandable else '', 'max_split_size': -1,
            'garbage_collection_threshold': 0.0, 'expandable_segments': devices[0].expandable,
            'pinned_num_register_threads': 1, 'release_lock_on_cudamalloc': False, 'pinned_use_cuda_host_register': False,
            'roundup_power2_divisions': {'1': 0, '2': 0}}
    if version >= (2, 5):
        out['external_annotations'] = list(annotations)
    if version >= (2, 12):
        out['host_segments'], out['host_traces'] = [], []
    return out


def truth_of(device, first_event=0):
    series = device.series[first_event:]
    out = {'device': device.number, 'events': len(series), 'end_allocated_bytes': device.allocated,
           'end_reserved_bytes': device.reserved,
           'failures': [dict(f, event=e - first_event) for e, f in device.failures if e >= first_event]}
    out['end'] = {k: v for k, v in device.fragmentation(0, 0).items() if 'inactive' in k}
    if not series:
        return out
    before = device.series[first_event - 1] if first_event else (0, 0, {})
    peak = max(before[0], max(s[0] for s in series))
    at = next((i for i, s in enumerate(series) if s[0] == peak), -1) if before[0] < peak else -1
    state = series[at] if at >= 0 else before
    out.update(peak_allocated_bytes=peak, peak_event=at, peak_reserved_bytes=max([before[1]] + [s[1] for s in series]),
               peak_places={k: v for k, v in state[2].items() if v}, bytes_before=before[0], reserved_before=before[1],
               allocated=[s[0] for s in series], reserved=[s[1] for s in series])
    return out


def device(number=0, capacity=1 << 30, **options):
    return Device(number, capacity, **options)


def run_out(target, unwind=False, **options):
    """A training that fails; the failed step's memory is freed while the exception unwinds, then the cache is emptied."""
    try:
        train(target, steps=4, **options)
    except OutOfMemory:
        if unwind:
            for handle in list(target.live):
                if handle[1].place not in ('weights', 'states'):
                    target.free(handle)
            target.release_cached()
    return target


def scenarios():
    """(name, pickle protocol, snapshot, truth)"""
    a = device()
    train(a, steps=3)
    yield 'train_2_5', 4, snapshot_of([a], (2, 5)), [truth_of(a)]

    b = run_out(device(capacity=90 * MIB), unwind=True, width=4 * MIB)
    yield 'oom_2_9', 4, snapshot_of([b], (2, 9)), [truth_of(b)]

    c = device()
    train(c, steps=4)
    cut = len(c.events) - 75
    yield 'wrapped_2_3', 4, snapshot_of([c], (2, 3), cut), [truth_of(c, cut)]

    d = [device(0), device(1)]
    train(d[0], steps=1)
    train(d[1], steps=2, layers=2)
    yield 'two_devices_2_1', 2, snapshot_of(d, (2, 1)), [truth_of(x) for x in d]

    e = run_out(device(capacity=122 * MIB, expandable=True), unwind=True, width=5 * MIB)
    yield 'expandable_2_12', 5, snapshot_of([e], (2, 12)), [truth_of(e)]

    m = run_out(device(capacity=92 * MIB), width=4 * MIB)
    yield 'oom_2_8', 4, snapshot_of([m], (2, 8)), [truth_of(m)]

    f = device()
    serve_graphs(f)
    yield 'private_pool_2_1', 3, snapshot_of([f], (2, 1)), [truth_of(f)]

    g = device(has_times=False)
    train(g, steps=2, layers=2)
    yield 'history_2_0', 2, snapshot_of([g], (2, 0)), [truth_of(g)]

    h = device(has_times=False)
    train(h, steps=1, layers=2)
    old = dict(truth_of(h), events=0, peak_allocated_bytes=h.series[-1][0])
    yield 'segments_1_13', 0, segments_of(h, (1, 13)), [{k: old[k] for k in ('device', 'events', 'end_allocated_bytes',
                                                                             'end_reserved_bytes', 'failures', 'end')}]

    i = device()
    train(i, steps=9, layers=1, leak=MIB)
    yield 'leak_2_6', 4, snapshot_of([i], (2, 6), annotations=annotations_of(i)), [truth_of(i)]

    j = device()
    train(j, steps=2, layers=2, backward='native backward', forward='native forward')
    yield 'native_frames_2_4', 1, snapshot_of([j], (2, 4)), [truth_of(j)]

    k = device()
    train(k, steps=6, layers=2, recompute=True)
    yield 'recompute_2_7', 4, snapshot_of([k], (2, 7)), [truth_of(k)]


def annotations_of(target):
    """The events that torch.optim writes for a step."""
    first = [e for i, e in enumerate(target.events) if e['action'] == 'alloc' and e['frames'] is STACKS['step'] and
             target.events[i - 1].get('frames') is not STACKS['step']]
    return [{'name': 'Optimizer.step#AdamW.step', 'stage': stage, 'device': 0, 'time_us': e['time_us'] + late}
            for e in first for stage, late in (('START', -1), ('END', 1))]


def write_small(folder):
    os.makedirs(folder, exist_ok=True)
    truth = {}
    for name, protocol, snapshot, true in scenarios():
        with open(os.path.join(folder, name + '.pickle'), 'wb') as file:
            pickle.dump(snapshot, file, protocol=protocol)
        truth[name] = true
    with open(os.path.join(folder, 'truth.json'), 'w', encoding='utf-8') as file:
        json.dump(truth, file, separators=(',', ':'))
        file.write('\n')


def write_large(path, events):
    target = device(capacity=80 << 30)
    stacks = [[frame(TORCH + f'nn/modules/part{i}.py', 10 * j, f'forward_{j}') for j in range(40)] + [TRAIN] for i in range(200)]
    held = []
    while len(target.events) < events:
        for i in range(200):
            held.append(target.malloc((1 + i % 7) * 3 * MIB // 2 + 512 * i, stacks[i][:10 + i % 30], 'layer'))
        for handle in held:
            target.free(handle)
        held, target.series = [], []
    # PyTorch makes one list per event, with shared frames.
    for event in target.events:
        if event.get('frames'):
            event['frames'] = list(event['frames'])
    with open(path, 'wb') as file:
        pickle.dump(snapshot_of([target], (2, 5)), file, protocol=4)


if __name__ == '__main__':
    if len(sys.argv) == 4 and sys.argv[1] == '--large':
        write_large(sys.argv[2], int(sys.argv[3]))
    elif len(sys.argv) == 2 and not sys.argv[1].startswith('-'):
        write_small(sys.argv[1])
    else:
        sys.exit(__doc__)
