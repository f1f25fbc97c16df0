"""What the GPU benchmarks and tests share: a run of headroom on a device, watched from outside by NVIDIA's management library."""
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
import task  # noqa: E402

GIB = 2 ** 30
# Options of torch_peer.py.
TORCH_VARIANTS = {'plain': [], 'compile': ['--compile'], 'checkpointing': ['--compile', '--checkpointing']}


class ProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t of API versions 2 and 3."""
    _fields_ = [('pid', ctypes.c_uint), ('used', ctypes.c_ulonglong), ('gpu', ctypes.c_uint), ('compute', ctypes.c_uint)]


class MemoryInfo(ctypes.Structure):
    """nvmlMemory_t."""
    _fields_ = [('total', ctypes.c_ulonglong), ('free', ctypes.c_ulonglong), ('used', ctypes.c_ulonglong)]


class DeviceWatch:
    """The most device memory that a process held, sampled every 5 ms: the driver's figure for the process where it gives one,
    else what the whole device held more than before."""

    def __init__(self, index=0):
        self.library = ctypes.CDLL('libnvidia-ml.so.1')
        self.device = ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(self.device)):
            sys.exit(f'NVML does not know device {index}')
        self.before = self.used()
        self.peak, self.stopped = 0, False

    def used(self):
        memory = MemoryInfo()
        self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory))
        return memory.used

    def held_by(self, pid):
        infos, count = (ProcessInfo * 256)(), ctypes.c_uint(256)
        if self.library.nvmlDeviceGetComputeRunningProcesses_v3(self.device, ctypes.byref(count), infos) == 0:
            for info in infos[:count.value]:
                if info.pid == pid and info.used != 2 ** 64 - 1:
                    return info.used
        return max(0, self.used() - self.before)

    def follow(self, pid):
        def sample():
            while not self.stopped:
                self.peak = max(self.peak, self.held_by(pid))
                time.sleep(0.005)
        self.thread = threading.Thread(target=sample, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopped = True
        self.thread.join()
        return self.peak


def watched(command, index=0, enough=None):
    """Runs a command, ended as soon as enough() says so, which counts as well done; returns (exit status, standard error, peak device bytes,
    the kernel's count of peak resident bytes)."""
    watch = DeviceWatch(index)
    with tempfile.TemporaryFile('w+') as errors:
        child = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=errors)
        watch.follow(child.pid)
        killed, pid = False, 0
        while enough and not pid:
            time.sleep(0.02)
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if not pid and enough():
                child.kill()
                killed, enough = True, None
        if not pid:
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = 0 if killed else os.waitstatus_to_exitcode(status)
        peak = watch.stop()
        errors.seek(0)
        return child.returncode, errors.read(), peak, usage.ru_maxrss * 1024


def room_to_save(model, folder):
    """Does the disk hold what a run writes at its end: weights, two states and the model, 16 bytes for each of the model's bf16 weights?"""
    weights = sum(os.path.getsize(os.path.join(model, name)) for name in os.listdir(model) if name.endswith('.safetensors'))
    return 8 * weights < shutil.disk_usage(folder).free


def steps_written(out):
    """How many steps a run's metrics have so far."""
    try:
        return len(task.read_steps(out))
    except (FileNotFoundError, json.JSONDecodeError):
        return 0


def train(binary, model, rows, out, memory, sequence, batch, steps, device='cuda:0', extra=(), saves=True):
    """One training run on the device. Returns its figures, of a run that fails the command and what it said ('failed'). Where the disk has no
    room for what a run leaves, or without `saves`, it is killed after the last step, and there is no measured arena."""
    shutil.rmtree(out, ignore_errors=True)
    saves = saves and room_to_save(model, os.path.dirname(out))
    command = [binary, 'train', '--model', model, '--data', rows, '--output-dir', out, '--device', device,
               '--max-seq-length', sequence, '--global-batch-size', batch, '--max-steps', steps if saves else 4 * steps, '--learning-rate', '1e-4',
               '--lr-scheduler-type', 'constant', *(['--memory', memory] if memory else []), *extra]
    said = ' '.join(map(str, command))
    status, errors, device_peak, resident = watched(command, int(device.split(':')[1]), None if saves else lambda: steps_written(out) >= steps)
    if status:
        return {'command': said, 'failed': f'exit {status}: {" ".join(errors[-600:].split())}'}
    steps_seen = task.read_steps(out)
    plan = task.read_json(out, 'plan.json')
    run = task.read_json(out, 'run.json') if saves else {}
    shutil.rmtree(out)
    seconds = statistics.median(row['seconds'] for row in steps_seen[2:])
    return {'command': said, 'tokens_per_second': batch * sequence / seconds, 'step_seconds': seconds,
            'predicted_step_seconds': plan['predicted_step_seconds'], 'planned_peak_bytes': plan['peak_bytes'],
            'device_peak_bytes': device_peak, 'resident_bytes': resident, 'losses': [row['loss'] for row in steps_seen],
            'arena_planned_bytes': plan['arena_bytes'], 'arena_measured_bytes': run.get('arena_measured_bytes'),
            'tiers': plan['tiers'], 'techniques': {t['name']: t['value'] for t in plan['techniques'] if t['value'] != 'off'}}


def fresh_model(binary, config, folder, sequence, rows):
    """A model of random weights in bf16 and a file of random rows for it; returns their paths."""
    os.makedirs(folder, exist_ok=True)
    model, data = os.path.join(folder, 'model'), os.path.join(folder, 'rows.jsonl')
    shutil.rmtree(model, ignore_errors=True)
    task.run([binary, 'init', '--config', config, '--tokenizer', 'bytes', '--dtype', 'bfloat16', '--output-dir', model])
    task.write_random_rows(data, task.vocabulary_of(config), rows, sequence)
    return model, data


def write_results(name, rows, columns, heading):
    """gpu_NAME.json and .md in HEADROOM_RESULTS, or else in benchmarks/results."""
    results = os.environ.get('HEADROOM_RESULTS') or os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'results')
    with open(os.path.join(results, f'gpu_{name}.json'), 'w', encoding='utf-8') as out:
        json.dump(rows, out, indent=1)
    with open(os.path.join(results, f'gpu_{name}.md'), 'w', encoding='utf-8') as out:
        out.write(f'# {heading}\n\n{time.strftime("%Y-%m-%d")}, {device_name()}\n\n')
        out.write('| ' + ' | '.join(columns) + ' |\n|' + '---|' * len(columns) + '\n')
        for row in rows:
            out.write('| ' + ' | '.join(shown(row.get(column)) for column in columns) + ' |\n')
    print(f'{len(rows)} rows, {sum("failed" in row for row in rows)} of them without a figure: gpu_{name}.md')


def shown(value):
    if isinstance(value, float):
        return f'{value:.3g}' if abs(value) < 100 else f'{value:.0f}'
    return '' if value is None else str(value)


def device_name():
    if shutil.which('nvidia-smi') is None:
        return 'no device'
    done = subprocess.run(['nvidia-smi', '--query-gpu=name,driver_version', '--format=csv,noheader'], capture_output=True, text=True)
    return done.stdout.strip() or 'no device'
