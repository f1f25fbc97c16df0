#include "doctor/config/document_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "doctor/config/cloud_job_reader.h"
#include "doctor/config/command_reader.h"
#include "doctor/config/dialects.h"

namespace headroom::doctor {
namespace {

// Keys that tell a system's file, blank-separated; a trailing * matches any rest. `weight` per key found.
struct Signature {
  DialectOf dialect;
  Rank rank;
  int weight;
  std::string_view keys;
};

constexpr Signature kSignatures[] = {
    {oumi_dialect, Rank::file, 4,
     "model.model_name training.trainer_type training.per_device_train_batch_size training.* data.train.* engine "
     "fsdp.enable_fsdp peft.q_lora"},
    {axolotl_dialect, Rank::file, 4,
     "base_model sequence_len sample_packing adapter val_set_size num_epochs lora_target_linear"},
    {llamafactory_v1_dialect, Rank::file, 4,
     "model_class dist_config.* kernel_config.* sample_backend train_dataset peft_config.* quant_config.*"},
    {llamafactory_dialect, Rank::file, 4,
     "stage finetuning_type template cutoff_len lora_target lora_rank infer_backend quantization_bit dataset_dir "
     "pure_bf16"},
    {litgpt_dialect, Rank::file, 4,
     "train.micro_batch_size train.global_batch_size train.* checkpoint_dir lora_query out_dir eval.interval"},
    {neox_dialect, Rank::file, 3,
     "num_layers hidden_size num_attention_heads pipe_parallel_size model_parallel_size train_iters seq_length "
     "data_impl"},
    {accelerate_dialect, Rank::accelerate, 4,
     "distributed_type compute_environment num_machines num_processes machine_rank fsdp_config.fsdp_* "
     "deepspeed_config.*"},
    {deepspeed_dialect, Rank::deepspeed, 3,
     "zero_optimization.* train_micro_batch_size_per_gpu train_batch_size fp16.enabled bf16.enabled steps_per_print "
     "autotuning.* zero_allow_untested_optimizer"},
    {peft_dialect, Rank::adapter, 4, "peft_type base_model_name_or_path target_modules"},
    {bitsandbytes_dialect, Rank::adapter, 3, "bnb_4bit_quant_type bnb_4bit_compute_dtype _load_in_4bit quant_method"},
    {trl_dialect, Rank::file, 2,
     "max_length packing use_peft lora_r lora_target_modules num_generations max_completion_length loss_type "
     "model_init_kwargs.* dataset_train_split assistant_only_loss per_device_train_batch_size output_dir "
     "learning_rate"},
    {hf_trainer_dialect, Rank::file, 2,
     "per_device_train_batch_size output_dir num_train_epochs learning_rate gradient_accumulation_steps optim "
     "per_device_eval_batch_size max_steps warmup_steps model_name_or_path gradient_checkpointing"},
    {vllm_dialect, Rank::file, 4,
     "gpu_memory_utilization max_model_len tensor_parallel_size served_model_name enforce_eager max_num_seqs"},
    {sglang_dialect, Rank::file, 4, "model_path mem_fraction_static tp_size context_length"},
};

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.ends_with('*')) return path.starts_with(pattern.substr(0, pattern.size() - 1));
  return path == pattern;
}

struct Found {
  const Signature* signature = nullptr;
  int score = 0;
  std::string evidence;
};

Found score(const Signature& signature, const std::vector<Setting>& settings) {
  Found found{&signature, 0, {}};
  for (const std::string& key : split_words(signature.keys, " ")) {
    const auto hit = std::find_if(settings.begin(), settings.end(),
                                  [&](const Setting& setting) { return matches(key, setting.path); });
    if (hit == settings.end()) continue;
    found.score += signature.weight;
    if (found.evidence.size() < 120) found.evidence += (found.evidence.empty() ? "" : ", ") + hit->origin.key;
  }
  return found;
}

Found detect(const std::vector<Setting>& settings) {
  Found best;
  for (const Signature& signature : kSignatures) {
    Found found = score(signature, settings);
    if (found.score > best.score) best = std::move(found);
  }
  return best;
}

// ${name} and ${section.name} by the scalars of the same file, as OmegaConf does; nested up to 8 times.
void resolve_interpolations(std::vector<Setting>& settings) {
  std::map<std::string, const Setting*> scalars;  // the first one of each name
  for (const Setting& setting : settings)
    if (!setting.is_list) scalars.emplace(setting.path, &setting);
  for (Setting& setting : settings) {
    for (int round = 0; round < 8; ++round) {
      const size_t open = setting.text.rfind("${");
      if (open == std::string::npos) break;
      const size_t close = setting.text.find('}', open);
      if (close == std::string::npos || setting.text.size() > 4096) break;
      const std::string name = table_key(setting.text.substr(open + 2, close - open - 2));
      const auto found = scalars.find(name);
      if (found == scalars.end() || found->second == &setting) break;
      const Setting* source = found->second;
      if (source->text.size() > 4096) break;
      setting.text = setting.text.substr(0, open) + source->text + setting.text.substr(close + 1);
      setting.is_null = setting.is_null || (source->is_null && setting.text.empty());
    }
    if (!setting.is_list && setting.text.find("${") == std::string::npos) {
      setting.items = {setting.text};
      if (setting.unreadable.find("interpolation") != std::string::npos) setting.unreadable.clear();
    }
  }
}

// A model's own config.json, given as a configuration.
bool is_model_config(const DocumentNode& root) {
  return root.find("model_type") && (root.find("architectures") || root.find("hidden_size") || root.find("n_embd"));
}

Parts read_model_config(const std::string& name, const std::vector<Setting>& settings) {
  Parts parts;
  for (const Setting& setting : settings)
    parts.irrelevant.push_back({setting.origin, "describes the model, which is read from this file", setting.text});
  Setting model;
  model.path = "model_name_or_path";
  model.origin = {name, 1, "(the file itself)"};
  model.text = name;
  model.items = {name};
  parts.parts.push_back({&script_dialect(), Rank::adapter, {model}, name, "a model's own config.json"});
  return parts;
}

bool in_container(const DocumentLeaf& leaf) {
  return leaf.key == "command" || leaf.key == "args" || leaf.key == "entrypoint";
}

CommandWord word_of(const DocumentNode& node) {
  CommandWord word;
  word.text = node.text;
  word.line = node.line;
  word.begin = node.begin;
  word.end = node.end;
  return word;
}

// docker-compose and Kubernetes: command and args of the containers.
std::optional<Parts> read_container(const std::string& name, const std::vector<DocumentLeaf>& leaves) {
  Parts parts;
  std::vector<CommandWord> words;
  std::string image;
  Setting gpus;
  for (const DocumentLeaf& leaf : leaves) {
    const Setting setting = setting_of(leaf, name);
    if (leaf.key == "image") image = setting.text;
    const bool counts_gpus =
        leaf.key == "nvidia.com/gpu" || (leaf.key == "count" && leaf.path.find("devices") != std::string::npos);
    if (counts_gpus && gpus.text.empty()) {
      gpus = setting;
      continue;
    }
    if (!in_container(leaf)) {
      parts.irrelevant.push_back({setting.origin, "the container around the command", setting.text.substr(0, 200)});
      continue;
    }
    parts.irrelevant.push_back({setting.origin, "holds the command, whose options are read one by one", ""});
    if (leaf.value->kind == DocumentNode::Kind::sequence) {
      for (const DocumentNode& item : leaf.value->items) words.push_back(word_of(item));
    } else {
      for (const ShellCommand& command : parse_shell_commands(setting.text, name))
        for (CommandWord word : command.words) {
          word.line = leaf.value->line;
          word.begin = word.end = 0;
          words.push_back(std::move(word));
        }
    }
  }
  if (words.empty()) return std::nullopt;
  read_command(words, name, image, parts);
  if (parts.parts.empty()) return std::nullopt;
  if (!gpus.text.empty()) {
    gpus.path = "gpus";
    parts.parts.push_back({&slurm_dialect(), Rank::launcher, {gpus}, name, "resources of the container"});
  }
  return parts;
}

const Dialect* server_dialect(const std::string& server) {
  if (server == "vllm" || server.ends_with("-vllm")) return &vllm_dialect();
  if (server == "sglang") return &sglang_dialect();
  if (server == "llama-server" || server == "llama.cpp") return &llama_server_dialect();
  if (server == "tgi" || server == "text-generation-launcher") return &tgi_dialect();
  return nullptr;
}

}  // namespace

Parts read_server_row(const std::string& name, const DocumentNode& row) {
  const DocumentNode* server = row.find("server");
  const DocumentNode* options = row.find("options");
  if (!server || !options || options->kind != DocumentNode::Kind::mapping)
    throw Error(ErrorKind::format, fmt::format("{}:{}: a row without server and options", name, row.line),
                "give a configuration file, or rows with \"server\" and \"options\"");
  const Dialect* dialect = server_dialect(lower(server->text));
  if (!dialect)
    throw Error(ErrorKind::format,
                fmt::format("{}:{}: doctor does not read the options of '{}'", name, row.line, server->text),
                "it reads those of vLLM, SGLang, llama-server and text-generation-inference");
  Parts parts;
  Part part{dialect, Rank::command, {}, name, fmt::format("server '{}'", server->text)};
  for (const DocumentLeaf& leaf : document_leaves(*options)) part.settings.push_back(setting_of(leaf, name));
  for (const DocumentLeaf& leaf : document_leaves(row))
    if (!leaf.path.starts_with("options"))
      parts.irrelevant.push_back({{name, leaf.line, leaf.path}, "describes the row", leaf.value->text.substr(0, 200)});
  parts.parts.push_back(std::move(part));
  return parts;
}

Parts read_document(const std::string& name, const std::string& text, bool json) {
  const DocumentNode root = json ? parse_json_document(text, name) : parse_yaml_document(text, name);
  if (root.kind != DocumentNode::Kind::mapping)
    throw Error(
        ErrorKind::format,
        fmt::format("{}:{}: no configuration: a mapping of keys was expected", name, std::max<int64_t>(1, root.line)),
        "check that the path names a configuration");
  if (root.find("server") && root.find("options")) return read_server_row(name, root);
  const std::vector<DocumentLeaf> leaves = document_leaves(root);
  std::vector<Setting> settings;
  settings.reserve(leaves.size());
  for (const DocumentLeaf& leaf : leaves) settings.push_back(setting_of(leaf, name));
  if (is_model_config(root)) return read_model_config(name, settings);
  resolve_interpolations(settings);
  for (const DocumentLeaf& leaf : leaves)
    if (leaf.key == "_component_")
      return {{{&torchtune_dialect(), Rank::file, std::move(settings), name, "key " + leaf.path}}, {}, {}, {}, {}, {}};
  if (auto job = read_cloud_job(name, root)) return std::move(*job);
  if (std::any_of(leaves.begin(), leaves.end(), in_container))
    if (auto container = read_container(name, leaves)) return std::move(*container);
  // Ludwig's file has keys with axolotl's names and other meanings.
  if (root.find("trainer") && (root.find("input_features") || root.find("base_model")))
    throw Error(ErrorKind::format, fmt::format("{}:1: a configuration of Ludwig, which doctor does not read", name),
                "give the log, and --params for the model's size");
  const Found found = detect(settings);
  if (!found.signature)
    throw Error(
        ErrorKind::format,
        fmt::format("{}:1: no key of a system that doctor reads (first key '{}')", name,
                    leaves.empty() ? "" : leaves.front().path.substr(0, 60)),
        "give a configuration of transformers, TRL, PEFT, Accelerate, DeepSpeed, LitGPT, Oumi, axolotl, LLaMA-Factory, "
        "torchtune, GPT-NeoX, vLLM or SGLang");
  Part part{&found.signature->dialect(), found.signature->rank, std::move(settings), name, "key " + found.evidence};
  return {{std::move(part)}, {}, {}, {}, {}, {}};
}

}  // namespace headroom::doctor
