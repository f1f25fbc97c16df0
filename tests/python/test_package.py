"""headroom from Python: the command line's numbers, errors with figures, text as it arrives, Ctrl-C that saves."""
import _thread
import ast
import inspect
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import headroom

SHORT = {'memory': '512MiB', 'threads': 1, 'max_seq_length': 32}
RUN = {**SHORT, 'max_steps': 3, 'learning_rate': 1e-2}


def test_a_plan_has_figures_and_a_picture(model):
    plan = headroom.plan(model, **SHORT)
    assert plan.feasible and plan.budget_bytes == 512 << 20
    assert plan.arena_bytes + plan.process_bytes <= plan.peak_bytes <= plan.budget_bytes
    assert plan.to_dict()['arena_bytes'] == plan.arena_bytes == sum(plan.breakdown.values())
    assert 'optimizer' in plan._repr_html_() and repr(plan).startswith('<headroom.Plan: peak ')
    assert 'techniques' in plan.explanation()


def test_a_refusal_carries_its_figures(model, data, tmp_path):
    with pytest.raises(headroom.Refusal) as caught:
        headroom.train(model, data, tmp_path / 'out', memory='20MiB', max_seq_length=32)
    refusal = caught.value
    assert refusal.budget_bytes == 20 << 20 < refusal.minimum_bytes
    assert str(refusal.minimum_bytes) in refusal.remedy
    assert isinstance(refusal, MemoryError)
    assert not (tmp_path / 'out').exists()
    assert headroom.plan(model, memory=refusal.minimum_bytes + (64 << 20), max_seq_length=32).feasible
    assert 'Does not fit' in headroom.plan(model, memory='20MiB')._repr_html_()


def test_training_is_the_command_lines(model, data, tmp_path):
    steps, seen = [], []
    run = headroom.train(model, data, tmp_path / 'out', on_step=steps.append, on_plan=seen.append, on_note=str, **RUN)
    assert run.steps == 3 and not run.stopped and len(seen) == 1 and isinstance(seen[0], headroom.Plan)
    subprocess.run([os.environ['HEADROOM'], 'train', '--model', model, '--data', data, '--output-dir', tmp_path / 'by-command', '--memory', '512MiB',
                    '--threads', '1', '--max-seq-length', '32', '--max-steps', '3', '--learning-rate', '1e-2'], check=True, capture_output=True)
    with open(tmp_path / 'by-command' / 'metrics.jsonl', encoding='utf-8') as text:
        losses = [row['loss'] for row in map(json.loads, text) if 'loss' in row]
    assert [step.loss for step in steps] == pytest.approx(losses, abs=0)
    assert all(step.resident_bytes <= seen[0].peak_bytes for step in steps)
    evaluation = headroom.evaluate(tmp_path / 'out', data, memory='512MiB', max_seq_length=32)
    assert evaluation.targets > 100 and evaluation.loss < steps[0].loss


def test_text_comes_in_pieces(model):
    opened = headroom.Model(model, memory='512MiB', threads=1)
    pieces = list(opened.generate('line ', max_new_tokens=12, temperature=0))
    assert ''.join(pieces) == opened.write('line ', max_new_tokens=12, temperature=0)
    assert opened.write('line ', choice=['yes', 'no'], temperature=0) in ('yes', 'no')
    assert opened.write('line ', regex='[a-c]{3}').strip('abc') == ''
    assert opened.write('line ', json_schema={'enum': [1, 'a']}) in ('1', '"a"')
    endless = opened.generate('line ', max_new_tokens=40)
    next(endless)
    endless.close()
    with pytest.raises(headroom.Refusal):
        list(headroom.Model(model, memory='5MiB').generate('x'))


def test_a_model_stays_loaded_from_one_text_to_the_next(model, data):
    plans, greedy = [], {'max_new_tokens': 12, 'temperature': 0}
    opened = headroom.Model(model, memory='512MiB', threads=1)
    first = opened.write('line ', on_plan=plans.append, **greedy)
    assert opened.write('line ', on_plan=plans.append, **greedy) == first
    longer = opened.write('line 1764 of a text', on_plan=plans.append, **greedy)
    assert len(plans) == 1 and isinstance(plans[0], headroom.Plan) and plans[0].peak_bytes <= 512 << 20
    assert longer == headroom.Model(model, memory='512MiB', threads=1).write('line 1764 of a text', **greedy)
    opened.evaluate(data, max_seq_length=32)
    assert opened.write('line ', on_plan=plans.append, **greedy) == first and len(plans) == 2
    opened.release()
    assert opened.write('line ', on_plan=plans.append, **greedy) == first and len(plans) == 3


def test_ctrl_c_ends_what_has_no_result_before_its_end(model, data, tmp_path):
    headroom.train(model, data, tmp_path / 'adapter', lora_r=2, **RUN)
    works = {'evaluate': lambda told: headroom.evaluate(model, data, memory='512MiB', max_seq_length=32, on_progress=told),
             'merge': lambda told: headroom.merge(model, tmp_path / 'adapter', tmp_path / 'merged', on_progress=told),
             'quantize': lambda told: headroom.quantize(model, tmp_path / 'codes', on_progress=told)}
    for name, work in works.items():
        told = []

        def press(done, total):
            told.append((done, total))
            if done == 1:
                _thread.interrupt_main()

        with pytest.raises(KeyboardInterrupt):
            work(press)
        assert told[0][0] == 0 and told[-1][0] in (1, 2) and told[-1][0] < told[-1][1], name
        told.clear()
        assert [path.name for path in tmp_path.iterdir()] == ['adapter'], name
    for name, work in works.items():
        told = []
        work(lambda done, total: told.append((done, total)))
        assert told == [(done, told[-1][1]) for done in range(told[-1][1] + 1)], name


def test_everything_public_is_annotated_and_described():
    for of in (headroom.Model, headroom.Plan, headroom.doctor, headroom.doctor.Diagnosis):
        for name, member in vars(of).items():
            member = member.fget if isinstance(member, property) else member
            if name.startswith('_') or not inspect.isfunction(member):
                continue
            assert 'return' in member.__annotations__ and member.__doc__, name
    for made in (headroom.Training, headroom.Evaluation, headroom.Step, headroom._engine.Generation, headroom._engine.Diagnosis):
        assert made.__doc__, made


def test_errors_name_the_option(model, data):
    with pytest.raises(headroom.UsageError, match="did you mean 'memory'"):
        headroom.Model(model, memry='1GiB')
    with pytest.raises(ValueError, match='--max-steps many'):
        headroom.plan(model, max_steps='many')
    with pytest.raises(headroom.UsageError, match='absent'):
        headroom.plan('absent', memory='1GiB')
    with pytest.raises(headroom.UsageError, match='recompote'):
        headroom.plan(model, technique={'recompote': 'on'}, **SHORT)


def test_what_a_callback_raises_passes(model, data, tmp_path):
    def stop(step):
        raise LookupError('mine')

    with pytest.raises(LookupError, match='mine'):
        headroom.train(model, data, tmp_path / 'out', on_step=stop, **RUN)
    assert headroom.train(model, data, tmp_path / 'again', **RUN).steps == 3


def test_ctrl_c_saves_and_raises(model, data, tmp_path):
    saved = []

    def press(step):
        if step.step == 2:
            _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        headroom.train(model, data, tmp_path / 'out', on_step=press, on_save=lambda step, where: saved.append((step, where)), **{**RUN, 'max_steps': 50})
    assert saved and saved[-1][0] in (2, 3) and os.path.isdir(saved[-1][1])
    resumed = headroom.train(model, data, tmp_path / 'out', resume_from_checkpoint='true', **{**RUN, 'max_steps': 5})
    assert resumed.steps == 5


def test_other_threads_work_during_a_run(model, data, tmp_path):
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1

    other = threading.Thread(target=count)
    other.start()
    before = counted[0]
    headroom.train(model, data, tmp_path / 'out', **{**RUN, 'max_steps': 20})
    during = counted[0] - before
    done.set()
    other.join()
    assert during > 0


def test_threads_train_and_generate_at_the_same_time(model, data, tmp_path):
    def losses(name, meeting=None, **options):
        seen = []

        def on_step(step):
            seen.append(step.loss)
            if meeting and step.step == 2:
                meeting.wait(30)  # raises when the other one does not arrive

        headroom.train(model, data, tmp_path / name, on_step=on_step, **{**RUN, 'max_steps': 5, **options})
        return seen

    tight = {'memory': '192MiB', 'technique': {'recompute': 'on'}, 'global_batch_size': 4}
    alone = losses('a'), losses('b', **tight)
    assert alone[0] != alone[1]
    text = headroom.Model(model, **SHORT).write('line ', max_new_tokens=12, temperature=0)
    meeting, beside, errors = threading.Barrier(2), [None, None], []

    def run(place, name, options):
        try:
            beside[place] = losses(name, meeting, **options)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=arguments) for arguments in ((0, 'beside-a', {}), (1, 'beside-b', tight))]
    for thread in threads:
        thread.start()
    first, second = (headroom.Model(model, **SHORT).generate('line ', max_new_tokens=12, temperature=0) for _ in range(2))
    both = [next(first), next(second)]  # two generations at once, during the trainings
    assert both[0] + ''.join(first) == both[1] + ''.join(second) == text
    for thread in threads:
        thread.join()
    assert not errors and tuple(beside) == alone
    for name in ('beside-a', 'beside-b'):
        with open(tmp_path / name / 'run.json', encoding='utf-8') as file:
            end = json.load(file)
        assert 0 < end['arena_measured_bytes'] <= end['arena_planned_bytes'] < end['budget_bytes']


def test_a_measurement_tells_its_share_and_ctrl_c_ends_it(tmp_path, monkeypatch):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    with pytest.raises(headroom.UsageError, match='null'):
        headroom.profile('null')
    with pytest.raises(headroom.UsageError, match='outptu'):
        headroom.profile(outptu='x')
    shares = []

    def press(share):
        shares.append(share)
        _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        headroom.profile(output=tmp_path / 'here.json', threads=1, on_progress=press)
    assert shares and all(0 <= share <= 1 for share in shares)
    assert not (tmp_path / 'here.json').exists()


def test_questions_before_training(model, tmp_path):
    opened = headroom.Model(model, **SHORT)
    levels = opened.least_budgets()
    assert [level['allow'] for level in levels] == ['exact', 'reassociating', 'data-order', 'lossy']
    assert levels[0]['minimum_bytes'] >= levels[-1]['minimum_bytes'] > 0
    assert opened.technique_ladder()[0]['name'] == 'baseline'
    points = opened.plans_by_budget()
    assert points[0]['peak_bytes'] <= points[-1]['peak_bytes']
    notes = []
    measured = opened.measure_plans(on_note=notes.append)
    assert measured[0]['measured_step_seconds'] > 0 and notes
    assert headroom.suggest_models(model, **SHORT)[0]['train']['feasible']
    small, large = opened.plan(), opened.plan(global_batch_size=16)
    file = tmp_path / 'plan.json'
    file.write_text(json.dumps(large.to_dict()))
    assert headroom.compare_plans(small, file)['peak_bytes'] == [small.peak_bytes, large.peak_bytes]
    with pytest.raises(headroom.UsageError, match="does not fit"):
        headroom.compare_plans(small, opened.plan(memory='20MiB'))


def test_a_plan_for_a_device_that_is_not_here(model):
    assert headroom.plan(model, memory='4GiB', profile='A100-80GB').feasible


def test_a_quantised_model_writes_text(model, tmp_path):
    headroom.quantize(model, tmp_path / 'codes', weights='nf4')
    assert headroom.Model(tmp_path / 'codes', memory='512MiB').write('line ', max_new_tokens=4) != ''
    with pytest.raises(headroom.UsageError):
        headroom.quantize(model, tmp_path / 'other', weights='nf3')
    with pytest.raises(headroom.BudgetError):
        headroom.quantize(model, tmp_path / 'small', memory_bytes=1 << 20)


def test_the_example_runs(model, data, tmp_path):
    example = pathlib.Path(__file__).resolve().parents[2] / 'examples' / 'python' / 'plan_and_train.py'
    done = subprocess.run([sys.executable, example, model, data, tmp_path / 'out'], check=True, capture_output=True, text=True)
    for expected in ('at least ', 'optimizer states', 'step 20: loss ', '2.00 GiB'):
        assert expected in done.stdout, expected


def test_the_stubs_name_what_the_engine_has():
    from headroom import _engine
    with open(os.path.join(os.path.dirname(headroom.__file__), '_engine.pyi'), encoding='utf-8') as text:
        tree = ast.parse(text.read())
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            made = getattr(_engine, node.name)
            names = {part.target.id if isinstance(part, ast.AnnAssign) else part.name for part in node.body}
            assert {name for name in names if not name.startswith('_')} == {name for name in vars(made) if not name.startswith('_')}, node.name
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert functions == {name for name, made in vars(_engine).items() if callable(made) and not isinstance(made, type) and not name.startswith('_')}


def test_a_model_describes_itself(model):
    facts = headroom.describe(model)
    assert (facts.family, facts.layers, facts.vocabulary, facts.positions) == ('llama', 2, 258, 64)
