#!/usr/bin/env python3
"""Checks that a technique and an optimizer are what CONTRIBUTING.md says: a few files of their own. Each technique has its pass, its record,
its page, a test of its pass and its line in the pipeline, and is named nowhere else in src/ but where NAMED_IN says why. No file
outside src/optim/methods asks for an optimizer by its name but those of OPTIMIZERS_IN.

Usage: check_techniques.py [PROJECT_DIR]     prints every breach and the number of techniques and optimizers, exit 1 when there is a breach
       check_techniques.py --self-test       runs the checker on lines with known faults

doctor, which gives other systems' jobs the same remedies, is left out. Standard library only.
"""
import os
import re
import sys

import source_check

PIPELINE = 'planner/pipeline.cpp'
LISTED = re.compile(r'&techniques::(\w+)')

# Who else names techniques, and what for. A row is a file of src/ and the techniques that it may name ('': any).
NAMED_IN = {
    'engine/technique_pins.cpp': ('', 'options that people know (--lora-r, --precision, ...) as pins'),
    'engine/process_bytes.cpp': ('packing length_buckets lora micro_batch', 'what the preparation of data and adapters takes outside the arena'),
    'engine/opened_model.cpp': ('lora', 'an adapter given as a file pins its own settings'),
    'engine/training_request.cpp': ('offload_optimizer', 'paged_... names of optimizers'),
    'arguments/inference_options.cpp': ('quantize_weights qat offload_parameters prefetch', 'the techniques of evaluate and generate'),
    'planner/weight_placement.cpp': ('quantize_weights qat offload_parameters prefetch', 'plans without a backward pass'),
    'planner/finished_generation.cpp': ('lora quantize_weights qat', 'graphs without a backward pass'),
    'planner/inference.cpp': ('micro_batch chunked_loss', 'the sizes of an evaluation'),
    'engine/quantize.cpp': ('quantize_weights', 'which weights are stored as codes'),
    'planner/serving.cpp': ('offload_parameters', 'a pin that puts weights below the device before any size is tried'),
    'planner/alternatives.cpp': ('micro_batch', 'the cheapest way out may be another batch'),
    'planner/mixed_layers.cpp': ('recompute sequence_chunks compress_activations', 'the settings of single layers are searched apart'),
    'passes/precisions.h': ('bf16_mixed bf16_true fp16_mixed fp16_true', 'the words of --precision'),
    'planner/techniques/qat.cpp': ('lora quantize_weights', 'which weights are trained, and which are codes already'),
    'planner/techniques/quantize_training.cpp': ('lora quantize_weights qat', 'which weights are trained, and which are codes already'),
    'planner/bounds.cpp': ('chunked_loss length_buckets micro_batch', 'sizes that bound a search'),
    'planner/candidates.cpp': ('chunked_loss', 'sizes that share a graph'),
    'planner/techniques/offload.cpp': ('offload_activations offload_optimizer offload_gradients offload_parameters prefetch', 'what the four offloads share'),
    'planner/techniques/offload.h': ('prefetch', 'what the four offloads share'),
    'planner/techniques/fused_optimizer.cpp': ('micro_batch', 'an update inside the backward pass wants one micro-batch'),
    'planner/techniques/micro_batch.cpp': ('fused_optimizer', 'the same from the other side'),
    'planner/techniques/quantize_weights.cpp': ('lora', 'a frozen base'),
    'planner/techniques/sequence_chunks.cpp': ('lora', 'thin products make parts smaller'),
    'train/checkpoint.cpp': ('micro_batch chunked_loss', "checkpoints of earlier formats"),
}

OPTIMIZERS_IN = {
    'train/options.h': 'the default of --optim', 'optim/settings.cpp': 'the settings of the default',
    'runtime/calibrate/round.cpp': 'the update that a calibration measures',
}
METHOD = re.compile(r'std::string_view name\(\) const override \{([^}]*)\}')
QUOTED = re.compile(r'"(\w+)"')


def constant_of(name):
    return 'k' + ''.join(word.capitalize() for word in name.split('_'))


def own_files(name):
    return (f'passes/{name}.h', f'passes/{name}.cpp', f'planner/techniques/{name}.cpp', f'planner/techniques/{name}.h', PIPELINE)


def names_technique(name):
    """The record, qualified or by a declaration of it, or the constant with its PassInfo."""
    return re.compile(rf'\btechniques::{name}\b|\b{constant_of(name)}\b(?!\w)')


def breaches(path, lines, techniques):
    """Techniques that a file of src/ names without a reason on record."""
    allowed = NAMED_IN.get(path)
    faults = []
    for name in techniques:
        if path in own_files(name) or (allowed and (not allowed[0] or name in allowed[0].split())):
            continue
        pattern = names_technique(name)
        faults += [f'src/{path}:{number}: names {name}: loop over all_techniques(), or say why in tools/check_techniques.py'
                   for number, line in enumerate(lines, 1) if pattern.search(line) and not line.lstrip().startswith('//')]
    return faults


def optimizer_breaches(path, lines, optimizers):
    if path in OPTIMIZERS_IN or path.startswith(('optim/methods/', 'ops/', 'doctor/')):
        return []
    return [f'src/{path}:{number}: names an optimizer: ask find_optimizer() (optim/optimizer.h)'
            for number, line in enumerate(lines, 1) if any(word in optimizers for word in QUOTED.findall(line))]


def missing_files(root, techniques):
    """Parts that a technique lacks."""
    faults = []
    tests = ''.join(''.join(lines) for _, lines in source_check.source_files(os.path.join(root, 'tests'), ('.cpp', '.h', '.py')))
    for name in techniques:
        dashed = name.replace('_', '-')
        parts = [f'src/passes/{name}.h', f'src/planner/techniques/{name}.cpp', f'docs/techniques/{dashed}.md']
        faults += [f'{path}: missing, a part of the technique {dashed}' for path in parts if not os.path.exists(os.path.join(root, path))]
        if not re.search(rf'passes/{name}\.h|\b{constant_of(name)}\b|{dashed}', tests):
            faults.append(f'tests: none names the technique {dashed}')
    return faults


def self_test():
    techniques = ['lora', 'recompute']
    lines = ['if (asked_for(request, kLora)) return;', '// kRecompute is a technique', 'techniques::recompute.name()', 'kLoraPrefix;']
    found = [fault.split(':')[1] for fault in breaches('planner/search.cpp', lines, techniques)]
    allowed = breaches('engine/opened_model.cpp', lines, techniques)
    named = optimizer_breaches('train/a.cpp', ['if (name == "lion") return;', '"lionised"'], {'lion'})
    if found != ['1', '3'] or len(allowed) != 1 or len(named) != 1:
        sys.exit(f'self test: found {found}, {allowed}, {named}')
    print('self test: ok')


def optimizers_of(root):
    names = set()
    for _, lines in source_check.source_files(os.path.join(root, 'src', 'optim', 'methods'), ('.cpp',)):
        for body in METHOD.findall(''.join(lines)):
            names |= set(QUOTED.findall(body))
    return names


def check(root):
    source = os.path.join(root, 'src')
    with open(os.path.join(source, PIPELINE), encoding='utf-8') as text:
        techniques = LISTED.findall(text.read())
    optimizers = optimizers_of(root)
    faults = missing_files(root, techniques)
    naming = set()
    for path, lines in source_check.source_files(source, ('.h', '.cpp')):
        if not path.startswith('doctor/'):
            faults += breaches(path, lines, techniques)
        text = ''.join(lines)
        if any(names_technique(name).search(text) for name in techniques):
            naming.add(path)
        faults += optimizer_breaches(path, lines, optimizers)
    faults += [f'src/{path}: names no technique any more: take its row out of tools/check_techniques.py' for path in NAMED_IN if path not in naming]
    return faults, f'{len(techniques)} techniques, {len(optimizers)} optimizers, {len(faults)} breaches'


if __name__ == '__main__':
    source_check.run(self_test, check, '..')
