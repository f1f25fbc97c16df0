"""A tiny model and its data, made by the program that HEADROOM names."""
import json
import os
import subprocess

import pytest

CONFIG = {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'vocab_size': 258, 'hidden_size': 32, 'intermediate_size': 64,
          'num_hidden_layers': 2, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'max_position_embeddings': 64, 'rms_norm_eps': 1e-5,
          'rope_theta': 10000.0, 'hidden_act': 'silu', 'tie_word_embeddings': True, 'torch_dtype': 'float32', 'initializer_range': 0.2,
          'bos_token_id': 256, 'eos_token_id': 257}


@pytest.fixture(scope='session')
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp('made')
    config = folder / 'config.json'
    config.write_text(json.dumps(CONFIG))
    subprocess.run([os.environ['HEADROOM'], 'init', '--config', config, '--tokenizer', 'bytes', '--seed', '3', '--output-dir', folder / 'model'],
                   check=True, capture_output=True)
    return folder / 'model'


@pytest.fixture(scope='session')
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp('text') / 'data.txt'
    file.write_text(''.join(f'line {n} of a text\n' for n in range(60)))
    return file
