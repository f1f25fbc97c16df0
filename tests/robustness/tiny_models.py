"""Random tiny models of every family that `headroom train` supports, as config.json, and data for them. Standard library only."""

import json

HEAD_DIMS = (4, 8, 12, 16, 24, 32)
CLASSES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "mistral": "MistralForCausalLM", "gpt2": "GPT2LMHeadModel",
           "qwen3": "Qwen3ForCausalLM", "olmo2": "Olmo2ForCausalLM", "gemma2": "Gemma2ForCausalLM",
           "gemma3_text": "Gemma3ForCausalLM", "gpt_neox": "GPTNeoXForCausalLM", "phi3": "Phi3ForCausalLM",
           "starcoder2": "Starcoder2ForCausalLM", "mixtral": "MixtralForCausalLM", "qwen3_moe": "Qwen3MoeForCausalLM"}
ENCODERS = {"bert": "Bert", "roberta": "Roberta"}
MODELS = (*((family, name) for family, name in CLASSES.items()), ("gpt_neox", "GPTNeoXForSequenceClassification"),
          *((family, stem + head) for family, stem in ENCODERS.items() for head in ("ForMaskedLM", "ForSequenceClassification")))
LABELS = 5
BYTES_VOCABULARY = 258  # of the tokenizer `bytes`


def draw_config(draw, family, architecture):
    """config.json of a tiny model; `draw` is a random.Random."""
    heads = draw.choice((1, 2, 3, 4, 6, 8))
    head_dim = draw.choice(HEAD_DIMS)
    positions = draw.choice((16, 40, 64, 96, 160, 256))
    config = {"architectures": [architecture], "model_type": family, "torch_dtype": "float32",
              "vocab_size": BYTES_VOCABULARY + draw.choice((0, 1, 77, 500, 3000)), "bos_token_id": 256, "eos_token_id": 257,
              "tie_word_embeddings": draw.random() < 0.5}
    if family == "gpt2":
        return config | {"n_embd": heads * head_dim, "n_head": heads, "n_layer": draw.randint(1, 6), "n_positions": positions,
                         "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5}
    config |= {"hidden_size": heads * head_dim, "intermediate_size": 4 * draw.randint(2, 100), "num_attention_heads": heads,
               "num_hidden_layers": draw.randint(1, 8), "max_position_embeddings": positions}
    if architecture.endswith("SequenceClassification"):
        config["num_labels"] = LABELS
    if family in ENCODERS:
        return config | {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "type_vocab_size": draw.randint(1, 2), "pad_token_id": 1,
                         "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "tie_word_embeddings": True}
    if family == "gpt_neox":
        return config | {"pad_token_id": 0, "hidden_act": "gelu", "rotary_pct": draw.choice((0.5, 1.0)), "rotary_emb_base": 10000,
                         "layer_norm_eps": 1e-5, "use_parallel_residual": draw.random() < 0.7, "tie_word_embeddings": False}
    config |= {"num_key_value_heads": draw.choice([n for n in range(1, heads + 1) if heads % n == 0]), "rope_theta": 10000.0,
               "rms_norm_eps": 1e-5, "hidden_act": "silu"}
    window = draw.choice((4, 7, 16))
    if family in ("mistral", "phi3") and draw.random() < 0.5:
        config["sliding_window"] = window
    if family in ("mixtral", "qwen3_moe"):
        experts = draw.randint(2, 8)
        config |= {"num_local_experts" if family == "mixtral" else "num_experts": experts, "num_experts_per_tok": draw.randint(1, min(3, experts))}
    if family == "qwen3_moe":
        config |= {"moe_intermediate_size": 4 * draw.randint(2, 30), "norm_topk_prob": draw.random() < 0.5, "decoder_sparse_step": draw.randint(1, 2)}
    if family in ("qwen3", "qwen3_moe", "gemma2", "gemma3_text"):
        config["head_dim"] = draw.choice(HEAD_DIMS)
    if family == "starcoder2":
        config |= {"hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5, "sliding_window": window, "use_bias": draw.random() < 0.7}
    if family.startswith("gemma"):
        config |= {"hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 16, "sliding_window": window,
                   "rms_norm_eps": 1e-6, "tie_word_embeddings": True}
    if family == "gemma3_text":
        config |= {"rope_local_base_freq": 1000.0, "sliding_window_pattern": draw.choice((2, 3))}
    return config


def widened(config):
    """The config with rows of multiples of 32 elements, which the groups of 8- and 4-bit weights divide."""
    heads = config.get("n_head") or config["num_attention_heads"]
    config = config | {"n_embd" if "n_embd" in config else "hidden_size": 32 * heads}
    if "head_dim" in config:
        config["head_dim"] = 32
    for name in ("intermediate_size", "moe_intermediate_size"):
        if name in config:
            config[name] += -config[name] % 32
    return config


def deepened(draw, config):
    """The config with many layers: tables and planning, which grow with them, are then as large as the arena."""
    return config | {"n_layer" if "n_layer" in config else "num_hidden_layers": draw.randint(20, 48)}


def positions_of(config):
    if config["model_type"] == "roberta":  # positions start after the padding id
        return config["max_position_embeddings"] - 2
    return config.get("n_positions") or config["max_position_embeddings"]


def layers_of(config):
    return config.get("n_layer") or config["num_hidden_layers"]


def draw_rows(draw, config, length):
    """Rows of one kind for sequences of `length`: (file name, text)."""
    architecture = config["architectures"][0]
    kind = draw.choice(("ids", "ids", "text", "prompts", "stream"))
    if architecture.endswith("SequenceClassification"):
        kind = draw.choice(("id classes", "classes"))
    elif architecture.endswith("MaskedLM"):
        kind = "ids"
    letters = "etaoin shrdlu,.\n"
    words = lambda most: "".join(draw.choice(letters) for _ in range(draw.randint(2, most)))
    if kind == "stream":
        return "data.txt", words(20 * length) + "the end"
    rows = []
    for _ in range(draw.randint(1, 30)):
        if kind == "classes":
            rows.append({"text": words(length), "label": draw.randrange(LABELS)})
        elif kind == "text":
            rows.append({"text": words(2 * length)})
        elif kind == "prompts":
            rows.append({"prompt": words(max(3, length // 2)), "completion": words(length)})
        else:
            ids = [draw.randrange(config["vocab_size"]) for _ in range(draw.randint(2, length + length // 2))]
            labels = [-100 if draw.random() < 0.2 else token for token in ids]
            rows.append({"input_ids": ids, "label": draw.randrange(LABELS)} if kind == "id classes" else
                        {"input_ids": ids, "labels": [ids[0], ids[1]] + labels[2:]})
    if kind == "prompts":  # one that certainly has a scored token
        rows.append({"prompt": "", "completion": "a"})
    return "data.jsonl", "".join(json.dumps(row) + "\n" for row in rows)
