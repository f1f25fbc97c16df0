#!/usr/bin/env python3
"""Writes oom_messages.jsonl: messages about memory in the formats in which programs print them, with random figures, and what a
reader must find in each. Usage: make_messages.py. Standard library only.

A row: "id", "text", "framework", "format", "phase"; the figures that the text states, in bytes by its own digits, or null;
"tolerance_bytes": half a unit of the last printed digit; "derived_fields": figures that follow from others. A program's
message is used only as a format, which is a fact; no text was posted by anyone.
"""
import json
import pathlib
import random

HERE = pathlib.Path(__file__).resolve().parent
FIELDS = ('requested', 'capacity', 'allocated', 'reserved', 'reserved_unallocated', 'free', 'process')
UNITS = {'MiB': 2**20, 'GiB': 2**30, 'MB': 2**20, 'GB': 2**30, 'M': 2**20, 'G': 2**30}
SPLIT_OLD = ('If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  '
             'See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF')
SPLIT = ('If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  '
         'See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF')
EXPANDABLE = ('If reserved but unallocated memory is large try setting {conf}=expandable_segments:True to avoid fragmentation.  '
              'See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)')
WATERMARK = 'Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure).'


class Row:
    """One message: its figures as printed, and their true values."""

    def __init__(self, rng):
        self.rng, self.truth, self.tolerance, self.derived, self.device = rng, {}, {}, [], None

    def exact(self, field, value):
        self.truth[field] = value
        return str(value)

    def sized(self, field, mib, unit='iB', digits=2):
        """A figure near `mib` MiB in MiB or GiB, as PyTorch prints it; unit 'iB' or 'B'."""
        name = ('G' if mib >= 1024 else 'M') + unit
        return self.number(field, mib * 2**20 / UNITS[name], name, digits) + ' ' + name

    def number(self, field, value, unit, digits=2):
        text = f'{value:.{digits}f}'
        if field:
            self.truth[field] = round(float(text) * UNITS[unit])
            self.tolerance[field] = UNITS[unit] * 0.5 * 10**-digits
        return text

    def difference(self, field, larger, smaller):
        self.truth[field] = self.truth[larger] - self.truth[smaller]
        self.tolerance[field] = self.tolerance.get(larger, 0) + self.tolerance.get(smaller, 0)
        self.derived.append(field)

    def sum(self, field, *parts):
        self.truth[field] = sum(self.truth[part] for part in parts)
        self.tolerance[field] = sum(self.tolerance.get(part, 0) for part in parts)
        self.derived.append(field)

    def gpu(self, most=0):
        self.device = self.rng.randint(0, most)
        return self.device

    def card(self):
        """MiB of a card: total, allocated, reserved besides that, and requested."""
        total = self.rng.choice((8031, 11178, 16130, 24258, 40536, 81050))
        allocated = total * self.rng.uniform(0.3, 0.9)
        return total, allocated, total * self.rng.uniform(0.01, 0.08), total * self.rng.uniform(0.03, 0.4)


def torch1(row, device='GPU', head='RuntimeError: CUDA out of memory', tail='', cached=False, spaces=' ', active=False, free=True):
    total, allocated, kept, asked = row.card()
    text = f'{head}. Tried to allocate {row.sized("requested", asked)} ({device}{spaces}{row.gpu(3)}; {row.sized("capacity", total)} total capacity; '
    text += row.sized('allocated', allocated) + ' already allocated; '
    text += f'{row.sized(None, allocated)} current active; ' if active else ''
    text += f'{row.sized("free", total * 0.015)} free; ' if free else ''
    if cached:
        text += row.sized('reserved_unallocated', kept) + ' cached)'
        row.sum('reserved', 'allocated', 'reserved_unallocated')
    else:
        text += row.sized('reserved', allocated + kept) + ' reserved in total by PyTorch)'
        row.difference('reserved_unallocated', 'reserved', 'allocated')
    return text + tail


def torch2(row, head='torch.OutOfMemoryError: CUDA out of memory', word='capacity', tail='', process=True, free=True):
    total, allocated, kept, asked = row.card()
    text = f'{head}. Tried to allocate {row.sized("requested", asked)}. GPU {row.gpu(7)} has a total {word} of {row.sized("capacity", total)}'
    text += f' of which {row.sized("free", total * 0.02)} is free. ' if free else '. '
    if process:
        text += f'Including non-PyTorch memory, this process has {row.sized("process", allocated + kept + 300)} memory in use. '
    text += f'Of the allocated memory {row.sized("allocated", allocated)} is allocated by PyTorch, and '
    text += row.sized('reserved_unallocated', kept) + ' is reserved by PyTorch but unallocated. '
    row.sum('reserved', 'allocated', 'reserved_unallocated')
    return text + tail


def mps(row, unit='iB', pool='private', head='RuntimeError: '):
    most = row.rng.choice((9288, 18565, 27853))
    held = most * row.rng.uniform(0.5, 0.9)
    text = f'{head}MPS backend out of memory (MPS allocated: {row.sized("allocated", held, unit)}, other allocations: '
    text += f'{row.sized(None, most - held - 5, unit)}, max allowed: {row.sized("capacity", most, unit)}). '
    return text + f'Tried to allocate {row.sized("requested", row.rng.uniform(100, 3000), unit)} on {pool} pool. {WATERMARK}'


def tensor_shape(row, full):
    shape = [row.rng.choice((64, 96, 128)), row.rng.choice((2016, 512)), row.rng.randint(9, 99)]
    text = 'ResourceExhaustedError: OOM when allocating tensor with shape[' + ','.join(map(str, shape)) + ']'
    if full:
        device = row.gpu(3)
        text += f' and type float on /job:localhost/replica:0/task:0/device:GPU:{device} by allocator GPU_{device}_bfc'
        row.truth['requested'] = shape[0] * shape[1] * shape[2] * 4
        row.derived.append('requested')
    return text


def size(row, low=2**24, high=2**38):
    return row.exact('requested', row.rng.randrange(low, high))


def kernel_killed(row):
    rss = row.rng.randrange(10**5, 10**8)
    row.truth['process'] = (rss + 68668) * 1024
    row.derived.append('process')
    row.tolerance['process'] = 68668 * 1024  # with or without memory mapped from files
    return (f'[{row.rng.uniform(10, 1e6):.6f}] Out of memory: Killed process {row.rng.randint(300, 99999)} (python) total-vm:{rss * 3}kB, '
            f'anon-rss:{rss}kB, file-rss:68668kB, shmem-rss:0kB, UID:1000 pgtables:{rss // 256}kB oom_score_adj:0')


def ggml_cuda(row):
    asked, device = row.rng.randrange(2**28, 2**36, 4096), row.gpu(1)
    row.truth['requested'] = asked
    return (f'ggml_backend_cuda_buffer_type_alloc_buffer: allocating {asked / 2**20:.2f} MiB on device {device}: cudaMalloc failed: out of memory\n'
            f'ggml_gallocr_reserve_n: failed to allocate CUDA{device} buffer of size {asked}')


def vllm_kv(row):
    return (f"ValueError: To serve at least one request with the models's max seq len ({row.rng.randint(9, 200) * 1024}), "
            f'({row.number("requested", row.rng.uniform(4, 40), "GiB")} GiB KV cache is needed, which is larger than the available KV cache '
            f'memory ({row.number("free", row.rng.uniform(0.5, 3.9), "GiB")} GiB). Based on the available memory, the estimated maximum model '
            f'length is {row.rng.randint(1, 90) * 128}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.')


def vllm_startup(row):
    total = row.rng.choice((22.05, 39.39, 79.11))
    return (f'ValueError: Free memory on device cuda:{row.gpu(3)} ({row.number("free", total * 0.8, "GiB")}/{row.number("capacity", total, "GiB")} GiB) on '
            f'startup is less than desired GPU memory utilization (0.9, {row.number("requested", total * 0.9, "GiB")} GiB). Decrease GPU memory '
            'utilization or reduce GPU memory used by other processes.')


def vllm_length(row):
    return (f"ValueError: The model's max seq len ({row.rng.randint(4, 99) * 1024}) is larger than the maximum number of tokens that can be stored "
            f'in KV cache ({row.rng.randint(90, 250) * 16}). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.')


def paddle(row):
    device = row.gpu(3)
    return (f'ResourceExhaustedError: \n\nOut of memory error on GPU {device}. Cannot allocate {row.number("requested", row.rng.uniform(1, 9), "GB", 6)}GB '
            f'memory on GPU {device}, available memory is only {row.number("free", row.rng.uniform(2, 900), "MB", 6)}MB.')


def ollama(row):
    return (f'ollama._types.ResponseError: model requires more system memory ({row.number("requested", row.rng.uniform(8, 60), "GiB", 1)} GiB) than is '
            f'available ({row.number("free", row.rng.uniform(2, 7.9), "GiB", 1)} GiB) (status code: 500)')


def tpu(row):
    most = row.rng.uniform(7, 30)
    return ('jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. '
            f'Used {row.number("requested", most + 3, "G")}G of {row.number("capacity", most, "G")}G hbm. Exceeded hbm capacity by 3.00G.')


def cupy(row):
    return f'cupy.cuda.memory.OutOfMemoryError: out of memory to allocate {size(row)} bytes (total {row.exact("allocated", row.rng.randrange(2**30, 2**34))} bytes)'


def bfc(row):
    device = row.gpu(1)
    return (f'tensorflow/core/common_runtime/bfc_allocator.cc:239] Allocator (GPU_{device}_bfc) ran out of memory trying to allocate '
            f'{row.number("requested", row.rng.uniform(20, 900), "MiB")}MiB with freed_by_count=0. The caller indicates that this is not a failure, '
            'but may mean that there could be performance gains if more memory were available.')


def tf_driver(row):
    asked = row.rng.randrange(2**22, 2**29)
    row.truth['requested'] = asked
    return f'failed to allocate {asked / 2**20:.2f}M ({asked} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory'


def metal(row):
    most = row.rng.randrange(2**33, 2**35)
    row.truth['capacity'] = most
    return (f'RuntimeError: [metal::malloc] Attempting to allocate {row.exact("requested", most + row.rng.randrange(2**30, 2**34))} bytes which is greater '
            f'than the maximum allowed buffer size of {most} bytes.')


def nccl_shm(row):
    return f'misc/shmutils.cc:71 NCCL WARN Error: failed to extend /dev/shm/nccl-aBcDeF to {size(row, 2**20, 2**25)} bytes'


def fixed(text):
    return lambda row: text


# framework, format, phase, count, function that makes the text
FORMATS = [
    ('pytorch-cuda', 'torch1_cached', 'unknown', 4, lambda row: torch1(row, cached=True)),
    ('pytorch-cuda', 'torch1_reserved', 'unknown', 5, torch1),
    ('pytorch-cuda', 'torch1_reserved_hint', 'unknown', 5,
     lambda row: torch1(row, head='torch.cuda.OutOfMemoryError: CUDA out of memory', tail=' ' + SPLIT_OLD)),
    ('pytorch-cuda', 'torch2_capacty_split', 'unknown', 4,
     lambda row: torch2(row, head='torch.cuda.OutOfMemoryError: CUDA out of memory', word='capacty', tail=SPLIT)),
    ('pytorch-cuda', 'torch2_capacity_exp', 'unknown', 6, lambda row: torch2(row, tail=EXPANDABLE.format(conf='PYTORCH_CUDA_ALLOC_CONF'))),
    ('pytorch-cuda', 'torch2_capacity_exp', 'unknown', 2,
     lambda row: torch2(row, process=False, tail=EXPANDABLE.format(conf='PYTORCH_CUDA_ALLOC_CONF'))),
    ('pytorch-hip', 'torch2_capacity_hip', 'unknown', 4,
     lambda row: torch2(row, head='torch.OutOfMemoryError: HIP out of memory', process=False, tail=EXPANDABLE.format(conf='PYTORCH_HIP_ALLOC_CONF'))),
    ('pytorch-mps', 'mps_gib', 'unknown', 3, mps),
    ('pytorch-mps', 'mps_gb', 'unknown', 3, lambda row: mps(row, 'B', head='')),
    ('pytorch-xpu', 'xpu_ipex', 'unknown', 2, lambda row: torch1(row, head='RuntimeError: XPU out of memory', free=False)),
    ('pytorch-xpu', 'torch2_capacity_xpu', 'unknown', 2,
     lambda row: torch2(row, head='torch.OutOfMemoryError: XPU out of memory', process=False, free=False,
                        tail='Please use `empty_cache` to release all unoccupied cached memory.')),
    ('pytorch-npu', 'npu', 'unknown', 3,
     lambda row: torch1(row, device='NPU', head='RuntimeError: NPU out of memory', active=True,
                        tail=' If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.')),
    ('pytorch-cpu', 'cpu_unix', 'unknown', 4,
     lambda row: "RuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: can't allocate memory: "
                 f'you tried to allocate {size(row)} bytes. Error code 12 (Cannot allocate memory)'),
    ('pytorch-cpu', 'cpu_win', 'unknown', 3,
     lambda row: r'RuntimeError: [enforce fail at ..\c10\core\CPUAllocator.cpp:72] data. DefaultCPUAllocator: not enough memory: '
                 f'you tried to allocate {size(row)} bytes. Buy new RAM!'),
    ('pytorch-cpu', 'cpu_old', 'unknown', 1,
     fixed('RuntimeError: [enforce fail at CPUAllocator.cpp:56] posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0')),
    ('cudnn', 'cudnn_tf', 'unknown', 1, fixed('Could not create cudnn handle: CUDNN_STATUS_ALLOC_FAILED')),
    ('cudnn', 'cudnn_torch7', 'unknown', 1, fixed('Error in CuDNN: CUDNN_STATUS_ALLOC_FAILED (cudnnFindConvolutionForwardAlgorithm)')),
    ('nccl', 'nccl_shm', 'comm_init', 1, nccl_shm),
    ('pytorch-cuda', 'thc', 'unknown', 1, fixed('cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58')),
    ('tensorflow', 'tf_full', 'unknown', 4, lambda row: tensor_shape(row, True)),
    ('tensorflow', 'tf_shape', 'unknown', 1, lambda row: tensor_shape(row, False)),
    ('tensorflow', 'tf_driver', 'unknown', 3, tf_driver),
    ('tensorflow', 'tf_bfc_soft', 'unknown', 2, bfc),
    ('jax', 'jax_plain', 'unknown', 4,
     lambda row: f'jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate {size(row)} bytes.'),
    ('xla-tpu', 'tpu_hbm', 'compile', 2, tpu),
    ('vllm', 'vllm_no_blocks', 'serve_init', 1,
     fixed('ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.')),
    ('vllm', 'vllm_max_seq_len', 'serve_init', 3, vllm_length),
    ('vllm', 'vllm_kv_needed', 'serve_init', 3, vllm_kv),
    ('vllm', 'vllm_free_startup', 'serve_init', 2, vllm_startup),
    ('sglang', 'sglang_static', 'serve_init', 1, fixed('RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.')),
    ('tgi', 'tgi_prefill', 'serve_init', 1,
     fixed('Error: Warmup(Generation("Not enough memory to handle 8192 prefill tokens. You need to decrease `--max-batch-prefill-tokens`"))')),
    ('lmdeploy', 'turbomind', 'serve_init', 1,
     fixed('RuntimeError: [TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/turbomind/utils/memory_utils.cu:32')),
    ('llama.cpp', 'ggml_cuda', 'compute_buffer', 3, ggml_cuda),
    ('llama.cpp', 'ggml_vulkan', 'load', 2,
     lambda row: f'ggml_vulkan: Device memory allocation of size {size(row)} failed.\nggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory'),
    ('ollama', 'ollama_sysmem', 'load', 2, ollama),
    ('bitsandbytes', 'bnb_managed', 'unknown', 1, fixed('Error out of memory at line 351 in file /src/bitsandbytes/csrc/pythonInterface.c')),
    ('mlx', 'mlx_metal', 'unknown', 2, metal),
    ('onnxruntime', 'ort_bfc', 'unknown', 2,
     lambda row: '/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, '
                 f'onnxruntime::Stream*, bool, onnxruntime::WaitNotificationFn) Failed to allocate memory for requested buffer of size {size(row)}'),
    ('paddle', 'paddle', 'unknown', 3, paddle),
    ('cupy', 'cupy_old', 'unknown', 2, cupy),
    ('linux-oom', 'dmesg', 'host_ram', 3, kernel_killed),
    ('slurm', 'slurm', 'host_ram', 1,
     fixed('slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.\nsrun: error: n1: task 0: Out Of Memory')),
    ('launcher', 'torchelastic', 'host_ram', 1,
     fixed('ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 4711) of binary: /usr/bin/python')),
    ('kubernetes', 'k8s_137', 'host_ram', 1, fixed('terminated with exit code (137). Reason [Error]. Message:')),
    ('pytorch-dataloader', 'shm_bus', 'data', 1,
     fixed("RuntimeError: DataLoader worker (pid 815) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared "
           'memory. Please try to raise your shared memory limit.')),
]


def main():
    rng, lines = random.Random(18), []
    for framework, form, phase, count, make in FORMATS:
        for _ in range(count):
            row = Row(rng)
            text = make(row)
            lines.append({'id': f'made-{len(lines) + 1:03}', 'text': text, 'framework': framework, 'format': form, 'phase': phase,
                          **{field + '_bytes': row.truth.get(field) for field in FIELDS}, 'device_index': row.device,
                          'tolerance_bytes': row.tolerance, 'derived_fields': row.derived})
    (HERE / 'oom_messages.jsonl').write_text(''.join(json.dumps(line) + '\n' for line in lines))
    print(len(lines), 'messages')


if __name__ == '__main__':
    main()
