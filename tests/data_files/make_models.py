#!/usr/bin/env python3
"""Writes models/*/config.json for models whose published file has no open licence, or an unknown one: their geometry, which is a
fact, under the keys of the family's configurations. Usage: make_models.py. Standard library only."""
import json
import pathlib

HERE = pathlib.Path(__file__).parent


def llama(**sizes):
    return {'architectures': ['LlamaForCausalLM'], 'model_type': 'llama', 'hidden_act': 'silu', 'rms_norm_eps': 1e-05,
            'initializer_range': 0.02, 'attention_bias': False, **sizes}


MODELS = {
    'llama-2-7b': llama(
        vocab_size=32000, hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
        num_key_value_heads=32, max_position_embeddings=4096, rope_theta=10000.0, tie_word_embeddings=False,
        bos_token_id=1, eos_token_id=2, pad_token_id=0, torch_dtype='float32'),
    'llama-3.2-1b-bnb8': llama(
        vocab_size=128256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
        num_key_value_heads=8, head_dim=64, max_position_embeddings=131072, rope_theta=500000.0, mlp_bias=False,
        rope_scaling={'rope_type': 'llama3', 'factor': 32.0, 'low_freq_factor': 1.0, 'high_freq_factor': 4.0,
                      'original_max_position_embeddings': 8192},
        tie_word_embeddings=True, bos_token_id=128000, eos_token_id=128001, torch_dtype='float16',
        quantization_config={'quant_method': 'bitsandbytes', 'load_in_8bit': True, 'load_in_4bit': False,
                             'llm_int8_threshold': 6.0}),
    'roberta-base': {
        'architectures': ['RobertaModel'], 'model_type': 'roberta', 'vocab_size': 50265, 'hidden_size': 768,
        'intermediate_size': 3072, 'num_hidden_layers': 12, 'num_attention_heads': 12, 'max_position_embeddings': 514,
        'type_vocab_size': 1, 'hidden_act': 'gelu', 'layer_norm_eps': 1e-05, 'initializer_range': 0.02,
        'attention_probs_dropout_prob': 0.1, 'hidden_dropout_prob': 0.1, 'position_embedding_type': 'absolute',
        'bos_token_id': 0, 'eos_token_id': 2, 'pad_token_id': 1, 'torch_dtype': 'float32'},
    'bert-large-uncased': {
        'architectures': ['BertForMaskedLM'], 'model_type': 'bert', 'vocab_size': 30522, 'hidden_size': 1024,
        'intermediate_size': 4096, 'num_hidden_layers': 24, 'num_attention_heads': 16, 'max_position_embeddings': 512,
        'type_vocab_size': 2, 'hidden_act': 'gelu', 'layer_norm_eps': 1e-12, 'initializer_range': 0.02,
        'attention_probs_dropout_prob': 0.1, 'hidden_dropout_prob': 0.1, 'position_embedding_type': 'absolute', 'pad_token_id': 0},
    'qwen2.5-1.5b': {
        'architectures': ['Qwen2ForCausalLM'], 'model_type': 'qwen2', 'vocab_size': 151936, 'hidden_size': 1536,
        'intermediate_size': 8960, 'num_hidden_layers': 28, 'num_attention_heads': 12, 'num_key_value_heads': 2,
        'max_position_embeddings': 32768, 'rms_norm_eps': 1e-06, 'rope_theta': 1000000.0, 'hidden_act': 'silu',
        'initializer_range': 0.02, 'sliding_window': 32768, 'use_sliding_window': False, 'max_window_layers': 24,
        'tie_word_embeddings': True, 'bos_token_id': 151643, 'eos_token_id': 151645, 'torch_dtype': 'bfloat16'},
    'pythia-410m-seqcls': {
        'architectures': ['GPTNeoXForSequenceClassification'], 'model_type': 'gpt_neox', 'vocab_size': 50304,
        'hidden_size': 1024, 'intermediate_size': 4096, 'num_hidden_layers': 24, 'num_attention_heads': 16,
        'max_position_embeddings': 2048, 'rotary_pct': 0.25, 'rotary_emb_base': 10000, 'use_parallel_residual': True,
        'attention_bias': True, 'hidden_act': 'gelu', 'layer_norm_eps': 1e-05, 'initializer_range': 0.02,
        'tie_word_embeddings': False, 'bos_token_id': 0, 'eos_token_id': 0, 'pad_token_id': 50277,
        'id2label': {str(i): f'LABEL_{i}' for i in range(3)}, 'label2id': {f'LABEL_{i}': i for i in range(3)},
        'problem_type': 'single_label_classification', 'torch_dtype': 'float32'},
    'ttm-v1': {
        'architectures': ['TinyTimeMixerForPrediction'], 'model_type': 'tinytimemixer', 'context_length': 1024,
        'prediction_length': 96, 'patch_length': 64, 'patch_stride': 64, 'num_patches': 16, 'd_model': 192,
        'num_layers': 2, 'expansion_factor': 2, 'decoder_d_model': 128, 'decoder_num_layers': 2,
        'num_input_channels': 1, 'self_attn': False, 'self_attn_heads': 1, 'torch_dtype': 'float32'},
    'bloom-3b': {
        'architectures': ['BloomForCausalLM'], 'model_type': 'bloom', 'vocab_size': 250880, 'hidden_size': 2560,
        'n_layer': 30, 'n_head': 32, 'layer_norm_epsilon': 1e-05, 'initializer_range': 0.02,
        'apply_residual_connection_post_layernorm': False, 'bos_token_id': 1, 'eos_token_id': 2, 'pad_token_id': 3,
        'torch_dtype': 'float32'},
}


def main():
    for name, config in MODELS.items():
        folder = HERE / 'models' / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'config.json').write_text(json.dumps(config, indent=1) + '\n')


if __name__ == '__main__':
    main()
