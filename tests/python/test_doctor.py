"""doctor from Python: errors, what a process knows about itself, a trainer's settings. Uses stand-ins instead of torch."""
import io
import subprocess
import sys
import textwrap

import pytest

import headroom
from headroom import doctor

TEXT = ('CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.12 GiB is free. '
        'Process 1234 has 22.56 GiB memory in use.')


class OutOfMemoryError(RuntimeError):
    """Like torch's."""


OutOfMemoryError.__module__ = 'torch'


def test_an_exception_is_explained():
    answer = doctor.explain(OutOfMemoryError(TEXT))
    assert '2.00 GiB' in str(answer)
    assert answer.to_dict()['messages'][0]['requested_bytes'] == 2 << 30
    assert len(answer.details) > len(answer.screen)
    assert '2.00 GiB' in str(doctor.explain(TEXT))
    with pytest.raises(headroom.UsageError):
        doctor.explain()


def test_watch_answers_and_lets_the_exception_go_on():
    out = io.StringIO()
    with pytest.raises(OutOfMemoryError):
        with doctor.watch(file=out):
            raise OutOfMemoryError(TEXT)
    assert '2.00 GiB' in out.getvalue()
    silent = io.StringIO()
    with pytest.raises(KeyError):
        with doctor.watch(file=silent):
            raise KeyError('other')
    assert silent.getvalue() == ''


def test_what_runs_out_is_told_apart():
    assert doctor.is_out_of_memory(MemoryError())
    assert doctor.is_out_of_memory(RuntimeError('CUDA error: out of memory'))
    assert not doctor.is_out_of_memory(RuntimeError('shapes do not match'))


SCRIPT = textwrap.dedent("""
    import json
    from headroom.doctor import TrainerCallback

    class OutOfMemoryError(RuntimeError):
        pass
    OutOfMemoryError.__module__ = 'torch'

    class Json:
        def __init__(self, **values):
            self.__dict__.update(values)
        def to_json_string(self, use_diff=True):
            return json.dumps(self.__dict__)

    class Model:
        config = Json(architectures=['LlamaForCausalLM'], model_type='llama', vocab_size=32000, hidden_size=4096, intermediate_size=11008,
                      num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=32, max_position_embeddings=4096, rms_norm_eps=1e-5,
                      tie_word_embeddings=False, torch_dtype='bfloat16')

    callback = TrainerCallback()
    args = Json(per_device_train_batch_size=8, gradient_accumulation_steps=4, bf16=True, gradient_checkpointing=False, optim='adamw_torch')
    callback.on_train_begin(args, None, None, model=Model())
    callback.on_step_end(args, None, None)
    raise OutOfMemoryError(%r)
""") % TEXT


def test_a_trainer_that_runs_out_is_answered_with_its_settings():
    done = subprocess.run([sys.executable, '-c', SCRIPT], capture_output=True, text=True)
    assert done.returncode == 1
    traceback, _, answer = done.stderr.partition(TEXT)
    assert 'Traceback' in traceback
    assert '2.00 GiB' in answer
    assert 'per_device_train_batch_size' in answer or 'gradient_checkpointing' in answer, answer
