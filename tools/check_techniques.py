#!/usr/bin/env python3
"""Checks that a technique and an optimizer are what CONTRIBUTING.md says: a few files of their own. Each technique has its pass, its record,
its page, a test of its pass and its line in the list, and is named nowhere else in src/, neither by its record nor as a string,
but where NAMED_IN says why. No file outside src/optim/methods asks for an optimizer by its name but those of OPTIMIZERS_IN.

Usage: check_techniques.py [PROJECT_DIR]     prints every breach and the number of techniques and optimizers, exit 1 when there is a breach
       check_techniques.py --self-test       runs the checker on lines with known faults

doctor, which gives other systems' jobs the same remedies, is left out. Standard library only.
"""
import os
import re
import sys

import source_check

LIST = 'planner/technique_list.h'
LISTED = re.compile(r'&techniques::(\w+)')

# Who else names techniques, and what for. A row is a file of src/ and the techniques that it may name.
NAMED_IN = {
    'engine/technique_pins.cpp': ('packing length_buckets lora freeze quantize_weights qat matmul_precision attention_order',
                                  'options that people know (--lora-r, --freeze, ...) as pins'),
    'engine/process_bytes.cpp': ('packing length_buckets', 'what the preparation of data takes outside the arena'),
    'engine/training_request.cpp': ('offload_optimizer', 'paged_... names of optimizers'),
    'planner/weight_placement.cpp': ('offload_parameters prefetch', 'plans without a backward pass'),
    'planner/inference.cpp': ('micro_batch chunked_loss', 'the sizes of an evaluation'),
    'engine/quantize.cpp': ('quantize_weights', 'which weights are stored as codes'),
    'planner/serving.cpp': ('offload_parameters', 'a pin that puts weights below the device before any size is tried'),
    'planner/mixed_layers.cpp': ('recompute', 'the settings of single layers are searched apart'),
    'planner/pipeline.cpp': ('attention_order', 'a step between the passes that follows its setting'),
    'planner/techniques/offload.cpp': ('offload_activations offload_optimizer offload_gradients offload_parameters prefetch', 'what the four offloads share'),
    'planner/techniques/offload.h': ('prefetch', 'what the four offloads share'),
    'planner/techniques/micro_batch.cpp': ('fused_optimizer', 'the same from the other side'),
    'planner/techniques/quantize_weights.cpp': ('lora', 'a frozen base'),
    'planner/techniques/bf16_mixed.cpp': ('fp16_mixed', 'both keep copies of the weights: one field of plan.json'),
    'train/checkpoint.cpp': ('micro_batch chunked_loss', "checkpoints of earlier formats"),
    'options/technique_options.cpp': ('matmul_precision attention_order', 'options of the same name'),
    'train/run_data.cpp': ('packing', "a field of the plan's choices: the data follow it"),
    'plan/plan_json.cpp': ('length_buckets', 'a field of plan.json'),
    'cli/train_command.cpp': ('recompute', "a field of the plan's choices, in the line about the plan"),
    'cli/model_commands.cpp': ('bf16_mixed', 'a word of --precision, of which a size is shown'),
    'ir/graph.cpp': ('recompute', 'a phase of the step'),
}

OPTIMIZERS_IN = {
    'train/options.h': 'the default of --optim', 'optim/settings.cpp': 'the settings of the default',
    'runtime/calibrate/round.cpp': 'the update that a calibration measures',
}
METHOD = re.compile(r'std::string_view name\(\) const override \{([^}]*)\}')
COMMENT = re.compile(r'\s//\s.*')
QUOTED = re.compile(r'"(\w+)"')


def constant_of(name):
    return 'k' + ''.join(word.capitalize() for word in name.split('_'))


def own_files(name):
    return (f'passes/{name}.h', f'passes/{name}.cpp', f'planner/techniques/{name}.cpp', f'planner/techniques/{name}.h', LIST)


def names_technique(name, path=''):
    """The record, the constant with its PassInfo, or the name as a string. Records are named without their namespace among themselves."""
    record = rf'[\[&]{name}\b' if path.startswith('planner/techniques/') else rf'\btechniques::{name}\b'
    return re.compile(rf'{record}|\btechniques::{name}\b|\b{constant_of(name)}\b|"{name.replace("_", "[-_]")}"')


def without_comment(line):
    return '' if line.lstrip().startswith('//') else COMMENT.sub('', line)


def breaches(path, lines, techniques):
    """Techniques that a file of src/ names without a reason on record."""
    allowed = NAMED_IN.get(path)
    faults = []
    for name in techniques:
        if path in own_files(name) or (allowed and name in allowed[0].split()):
            continue
        pattern = names_technique(name, path)
        faults += [f'src/{path}:{number}: names {name}: loop over all_techniques(), or say why in tools/check_techniques.py'
                   for number, line in enumerate(lines, 1) if pattern.search(without_comment(line))]
    return faults


def idle_rows(code):
    """Rows of NAMED_IN that allow what no file does; `code` has the files without their comments."""
    return [f'src/{path}: names {name} no more: take it out of tools/check_techniques.py'
            for path, (names, _) in NAMED_IN.items() for name in names.split() if not names_technique(name, path).search(code.get(path, ''))]


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
    lines = ['if (asked_for(request, kLora)) return;', '// kRecompute is a technique', 'techniques::recompute.name()', 'kLoraPrefix;',
             'pins["recompute"] = "on";  // "lora"', 'add("--lora");  // "lora"']
    found = [fault.split(':')[1] for fault in breaches('planner/search.cpp', lines, techniques)]
    allowed = breaches('engine/technique_pins.cpp', lines, techniques)
    named = optimizer_breaches('train/a.cpp', ['if (name == "lion") return;', '"lionised"'], {'lion'})
    if sorted(found) != ['1', '3', '5'] or len(allowed) != 2 or len(named) != 1:
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
    with open(os.path.join(source, LIST), encoding='utf-8') as text:
        techniques = LISTED.findall(text.read())
    optimizers = optimizers_of(root)
    faults = missing_files(root, techniques)
    code = {}
    for path, lines in source_check.source_files(source, ('.h', '.cpp')):
        if not path.startswith('doctor/'):
            faults += breaches(path, lines, techniques)
        if path in NAMED_IN:
            code[path] = ''.join(map(without_comment, lines))
        faults += optimizer_breaches(path, lines, optimizers)
    faults += idle_rows(code)
    return faults, f'{len(techniques)} techniques, {len(optimizers)} optimizers, {len(faults)} breaches'


if __name__ == '__main__':
    source_check.run(self_test, check, '..')
