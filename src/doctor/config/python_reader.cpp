#include "doctor/config/python_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "doctor/config/dialects.h"
#include "doctor/config/python_calls.h"
#include "formats/document.h"

namespace headroom::doctor {
namespace {

using Kind = PythonValue::Kind;

// Calls, by the last part of the callee, whose arguments are settings. `first`: the meaning of a first positional
// argument.
struct CallRule {
  std::string_view callees;  // blank-separated
  DialectOf dialect;
  std::string_view prefix;
  std::string_view first;
  bool strict = true;  // false: an argument that no table knows is an object of the script
};

constexpr CallRule kCalls[] = {
    {"TrainingArguments Seq2SeqTrainingArguments", hf_trainer_dialect, "", "output_dir"},
    {"SFTConfig DPOConfig GRPOConfig KTOConfig ORPOConfig CPOConfig RLOOConfig PPOConfig RewardConfig GKDConfig "
     "OnlineDPOConfig NashMDConfig XPOConfig PRMConfig BCOConfig",
     trl_dialect, "", "output_dir"},
    {"ModelConfig ScriptArguments", trl_dialect, "", "", false},
    {"SFTTrainer DPOTrainer GRPOTrainer KTOTrainer ORPOTrainer CPOTrainer RLOOTrainer PPOTrainer RewardTrainer",
     trl_dialect, "", "model", false},
    {"LoraConfig AdaLoraConfig LoHaConfig", peft_dialect, "", ""},
    {"BitsAndBytesConfig", bitsandbytes_dialect, "", ""},
    {"GPTQConfig AwqConfig HqqConfig", bitsandbytes_dialect, "", "", false},
    {"from_pretrained", script_dialect, "", "pretrained_model_name_or_path", false},
    {"DataLoader", pytorch_dialect, "DataLoader.", "dataset"},
    {"autocast", pytorch_dialect, "autocast.", "device_type"},
    {"GradScaler", pytorch_dialect, "GradScaler.", "device"},
    {"FSDP FullyShardedDataParallel fully_shard FSDPStrategy", pytorch_dialect, "FSDP.", "module"},
    {"MixedPrecision MixedPrecisionPolicy", pytorch_dialect, "MixedPrecision.", "param_dtype"},
    {"DDP DistributedDataParallel", pytorch_dialect, "DDP.", "module"},
    {"gradient_checkpointing_enable", pytorch_dialect, "gradient_checkpointing_enable.", ""},
    {"prepare_model_for_kbit_training", pytorch_dialect, "prepare_model_for_kbit_training.", "model"},
    {"get_peft_model", pytorch_dialect, "get_peft_model.", ""},
    {"clip_grad_norm_", pytorch_dialect, "clip_grad_norm_.", "parameters"},
    {"Accelerator", pytorch_dialect, "Accelerator.", ""},
    {"LlamaConfig GPT2Config MistralConfig MixtralConfig Qwen2Config Qwen3Config GPTNeoXConfig GemmaConfig "
     "Gemma2Config BertConfig PhiConfig Phi3Config OPTConfig",
     pytorch_dialect, "", "", false},
    {"TrainingParams", oumi_dialect, "training.", ""},
    {"ModelParams", oumi_dialect, "model.", ""},
    {"FSDPParams", oumi_dialect, "fsdp.", ""},
    {"PeftParams", oumi_dialect, "peft.", ""},
    {"DeepSpeedParams", oumi_dialect, "deepspeed.", ""},
    {"DataParams DatasetSplitParams DatasetParams", oumi_dialect, "data.", ""},
    {"GenerationParams", oumi_dialect, "generation.", ""},
    {"LLM EngineArgs AsyncEngineArgs", vllm_dialect, "", "model"},
    {"SamplingParams", vllm_dialect, "", "", false},
    {"Engine", sglang_dialect, "", "", false},
    {"Fabric", litgpt_dialect, "", "", false},
};

// The call itself is a setting; its name is that of the rule in PyTorch's table.
struct PlainCall {
  std::string_view callee, path;
};
constexpr PlainCall kPlainCalls[] = {
    {"gradient_checkpointing_enable", "gradient_checkpointing_enable"},
    {"gradient_checkpointing_disable", "gradient_checkpointing_disable"},
    {"prepare_model_for_kbit_training", "prepare_model_for_kbit_training"},
    {"get_peft_model", "get_peft_model"},
    {"DataParallel", "DataParallel"},
    {"empty_cache", "empty_cache"},
    {"GradScaler", "GradScaler"},
    {"apply_activation_checkpointing", "checkpoint"},
    {"checkpoint_wrapper", "checkpoint"},
    {"FSDP", "FSDP"},
    {"FullyShardedDataParallel", "FSDP"},
    {"fully_shard", "FSDP"},
    {"FSDPStrategy", "FSDP"},
    {"DDP", "DDP"},
    {"DistributedDataParallel", "DDP"},
};

constexpr std::string_view kOptimizers =
    "AdamW Adam SGD Adafactor RMSprop Adagrad Adamax NAdam RAdam LBFGS Lion FusedAdam DeepSpeedCPUAdam AdamW8bit "
    "Adam8bit PagedAdamW PagedAdamW8bit PagedAdamW32bit PagedAdam8bit Lion8bit SGD8bit AdamW4bit Adam4bit AdamWFp8 "
    "AdamFp8 GaLoreAdamW GaLoreAdamW8bit Muon Sophia SophiaG CPUOffloadOptimizer AdEMAMix";

bool contains(std::string_view words, std::string_view word) {
  size_t start = 0;
  while ((start = words.find_first_not_of(' ', start)) != std::string_view::npos) {
    const size_t end = std::min(words.find(' ', start), words.size());
    if (words.substr(start, end - start) == word) return true;
    start = end;
  }
  return false;
}

std::string last_part(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

// FastLanguageModel.get_peft_model(model, r=16, ...) takes LoraConfig's arguments itself.
constexpr CallRule kUnslothAdapters = {"get_peft_model", peft_dialect, "", "", false};

bool is_unsloth(const std::string& callee) {
  return callee.starts_with("Fast") && callee.find('.') != std::string::npos;
}

const CallRule* find_call(const std::string& callee) {
  const std::string last = last_part(callee);
  if (is_unsloth(callee) && last == kUnslothAdapters.callees) return &kUnslothAdapters;
  for (const CallRule& rule : kCalls)
    if (contains(rule.callees, last)) return &rule;
  return nullptr;
}

bool is_optimizer(const std::string& callee) {
  return callee.find("optim.") != std::string::npos ? contains(kOptimizers, last_part(callee))
                                                    : contains(kOptimizers, callee);
}

// torch.bfloat16 and ShardingStrategy.FULL_SHARD are constants; args.batch_size is not.
bool is_symbol(const std::string& name) {
  const std::string head = name.substr(0, name.find('.'));
  if (!head.empty() && head[0] >= 'A' && head[0] <= 'Z' &&
      name.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos)
    return true;
  return name.find('.') != std::string::npos &&
         contains("torch transformers bnb bitsandbytes peft trl oumi optim", head);
}

// CPUOffload(offload_params=True), Path("x"): a call around one constant.
const PythonValue* wrapped(const PythonValue& value) {
  if (value.kind != Kind::call || value.entries.size() != 1) return nullptr;
  const PythonValue& inside = value.entries.front().value;
  return inside.kind == Kind::string || inside.kind == Kind::number || inside.kind == Kind::boolean ? &inside : nullptr;
}

// The setting's text for a constant value.
void fill(Setting& setting, const PythonValue& value) {
  setting.text = value.text;
  setting.is_null = value.kind == Kind::none;
  setting.quoted = value.kind == Kind::string;
  if (value.kind == Kind::list) {
    setting.is_list = true;
    setting.text.clear();
    for (const PythonValue& item : value.items) {
      setting.items.push_back(item.text);
      setting.text += (setting.text.empty() ? "" : ",") + item.text;
    }
    return;
  }
  const bool computed = value.kind == Kind::unknown || value.kind == Kind::call || value.kind == Kind::mapping ||
                        (value.kind == Kind::name && !is_symbol(value.text));
  if (const PythonValue* inside = wrapped(value)) {
    setting.text = inside->text;
  } else if (computed && !(value.kind == Kind::mapping && value.items.empty() && value.entries.empty())) {
    setting.unreadable = fmt::format("'{}' is computed by the script", value.text.substr(0, 80));
  }
  setting.items = {setting.text};
}

class ScriptReader {
 public:
  ScriptReader(const std::string& name, const PythonScript& script) : name_(name), script_(script) {}

  Parts read() {
    for (const PythonCall& call : script_.calls) read_call(call);
    for (const PythonAssignment& made : script_.assignments) read_assignment(made);
    note_inference();
    note_apex();
    note_assumed();
    for (Part& part : found_) parts_.parts.push_back(std::move(part));
    return std::move(parts_);
  }

 private:
  // A script that loads a model and has no trainer, optimizer or backward pass only predicts.
  void note_inference() {
    bool trains = false, gradients = true;
    for (const PythonCall& call : script_.calls) {
      const std::string last = last_part(call.callee);
      trains = trains || is_optimizer(call.callee) || last == "backward" || last == "train" || last == "fit" ||
               last == "initialize" || last.ends_with("Trainer");
      gradients = gradients && last != "no_grad" && last != "inference_mode" && last != "set_grad_enabled" &&
                  last != "generate" && last != "pipeline";
    }
    for (const Part& part : found_)
      trains = trains || (part.dialect != &script_dialect() && part.dialect != &pytorch_dialect() &&
                          part.dialect != &bitsandbytes_dialect());
    if (!has_model_ || trains) return;
    parts_.facts["script.task"] = "infer";
    if (gradients) parts_.facts["script.gradients"] = "kept";
  }

  void note_apex() {
    for (const std::string& import : script_.imports)
      if (import == "apex" || import.starts_with("apex.")) parts_.facts["script.apex"] = "true";
    note_replaced_modules();
  }

  // Libraries that load or train a model with their own modules and kernels, which the memory model does not know.
  void note_replaced_modules() {
    for (const std::string& import : script_.imports)
      for (const char* library : {"unsloth", "colossalai", "llmfoundry", "composer", "open_flamingo", "ludwig"})
        if (import == library || import.starts_with(std::string(library) + "."))
          parts_.facts["script.library"] = library;
  }

  Part& part_of(const Dialect& dialect, const std::string& callee) {
    for (Part& part : found_)
      if (part.dialect == &dialect) return part;
    const bool shared = &dialect == &script_dialect() || &dialect == &peft_dialect() ||
                        &dialect == &bitsandbytes_dialect() || &dialect == &pytorch_dialect();
    found_.push_back({&dialect, shared ? Rank::adapter : Rank::script, {}, name_, "call " + callee});
    return found_.back();
  }

  Setting setting_at(int64_t line, const std::string& path, const std::string& key) const {
    Setting setting;
    setting.path = path;
    setting.origin = {name_, line, key};
    return setting;
  }
  void add(const Dialect& dialect, const std::string& callee, Setting setting, const std::string& text) {
    setting.text = text;
    setting.items = {text};
    part_of(dialect, callee).settings.push_back(std::move(setting));
  }
  void add_plain(const PythonCall& call, std::string_view path) {
    add(pytorch_dialect(), call.callee, setting_at(call.line, std::string(path), call.callee + "()"), "true");
  }

  void add_value(const Dialect& dialect, const std::string& callee, const std::string& path, const std::string& key,
                 const PythonValue& value, bool strict) {
    if (value.kind == Kind::mapping && !value.entries.empty()) {
      for (const auto& [name, inner] : value.entries)
        add_value(dialect, callee, path + "." + name, key + "." + name, inner, strict);
      return;
    }
    Setting setting = setting_at(value.line, path, key);
    if (value.kind == Kind::call && (find_call(value.text) || is_optimizer(value.text))) {
      parts_.irrelevant.push_back({setting.origin, "a call whose own arguments are read", value.text});
      return;
    }
    fill(setting, value);
    const std::string table = dialect.rewrite ? dialect.rewrite(path) : path;
    const bool object = !setting.unreadable.empty() && !find_rule(dialect, table);
    if (!strict && (object || !knows_key(dialect, table))) {
      parts_.irrelevant.push_back({setting.origin, "an object of the script", value.text.substr(0, 200)});
      return;
    }
    if ((value.assumed || (wrapped(value) && wrapped(value)->assumed)) && find_rule(dialect, table))
      assumed_.push_back(key.substr(key.rfind('.') + 1));
    part_of(dialect, callee).settings.push_back(std::move(setting));
  }

  // The note on values that are the script's own defaults.
  void note_assumed() {
    if (assumed_.empty()) return;
    std::string names;
    for (size_t i = 0; i < assumed_.size() && i < 8; ++i) names += (i > 0 ? ", " : "") + assumed_[i].substr(0, 60);
    parts_.notes.push_back(fmt::format(
        "{}: {} taken from the script's own defaults ({}{}): its command line may set others; give that too", name_,
        assumed_.size() == 1 ? "a value is" : fmt::format("{} values are", assumed_.size()), names,
        assumed_.size() > 8 ? ", ..." : ""));
  }

  void read_call(const PythonCall& call) {
    const std::string last = last_part(call.callee);
    if (call.callee.starts_with("def ")) return read_function(call);
    if (is_optimizer(call.callee)) return read_optimizer(call);
    if (last == "from_pretrained") return read_model(call);
    if (call.callee == "torch.compile") add_plain(call, "compile");
    if (call.callee == "torch.compile") return add_arguments(call, "compile.");
    if (call.callee == "deepspeed.initialize") return add_arguments(call, "deepspeed.initialize.");
    if (call.callee.ends_with("checkpoint.checkpoint") || call.callee == "checkpoint")
      return add_plain(call, "checkpoint");
    if (last == "to" || last == "bfloat16" || last == "half" || last == "set_default_dtype")
      return read_cast(call, last);
    if (last == "autocast") read_autocast(call);
    for (const PlainCall& plain : kPlainCalls)
      if (plain.callee == last) add_plain(call, plain.path);
    if (const CallRule* rule = find_call(call.callee)) read_arguments(call, *rule);
  }

  void add_arguments(const PythonCall& call, const std::string& prefix) {
    for (const auto& [name, value] : call.arguments)
      if (!name.empty())
        add_value(pytorch_dialect(), call.callee, prefix + name, call.callee + "." + name, value, true);
  }

  void read_arguments(const PythonCall& call, const CallRule& rule) {
    const Dialect& dialect = rule.dialect();
    part_of(dialect, call.callee);
    bool first = true;
    for (const auto& [name, value] : call.arguments) {
      std::string key = name;
      if (key.empty()) {
        const bool constant = value.kind == Kind::string || value.kind == Kind::number || is_symbol(value.text);
        const bool taken = first && !rule.first.empty() && constant && value.kind != Kind::call;
        first = false;
        if (!taken) continue;  // an object passed on, as in FSDP(model)
        key = rule.first;
      }
      const bool model = key == "model" && &dialect == &trl_dialect();
      if (model && (value.kind == Kind::name || value.kind == Kind::call) &&
          value.text.find('.') == std::string::npos) {
        parts_.irrelevant.push_back(
            {setting_at(value.line, key, call.callee + "." + key).origin, "an object of the script", value.text});
        continue;
      }
      add_value(dialect, call.callee, std::string(rule.prefix) + (model ? "model_name_or_path" : key),
                call.callee + "." + key, value, rule.strict && !model);
    }
    note_objective(call.callee);
  }

  void note_objective(const std::string& callee) {
    const std::string last = lower(last_part(callee));
    for (const char* objective : {"sft", "dpo", "grpo", "kto", "orpo", "cpo", "rloo", "ppo", "reward", "gkd"})
      if (last == std::string(objective) + "config") parts_.facts["trl.objective"] = objective;
  }

  // Tokenizers, processors and configs have from_pretrained too. The second model is a reference or a teacher.
  void read_model(const PythonCall& call) {
    const std::string owner = lower(call.callee.substr(0, call.callee.rfind('.')));
    for (const char* other : {"tokenizer", "processor", "config", "extractor", "scheduler", "dataset", "peftmodel"})
      if (owner.find(other) != std::string::npos) return;
    if (!has_model_) {
      has_model_ = true;
      const bool classifies = owner.find("forsequenceclassification") != std::string::npos ||
                              owner.find("fortokenclassification") != std::string::npos;
      if (classifies) parts_.facts["script.labels"] = "2";  // transformers' num_labels
      if (is_unsloth(call.callee)) note_unsloth_defaults(call);
      return read_arguments(call, *find_call(call.callee));
    }
    for (const auto& [name, value] : call.arguments)
      if (value.kind == Kind::string && (name.empty() || name.ends_with("model_name_or_path")))
        add(trl_dialect(), call.callee, setting_at(value.line, "ref_model", call.callee), value.text);
  }

  // By default Unsloth loads in 4 bits, with 16-bit types, and checkpoints every layer.
  void note_unsloth_defaults(const PythonCall& call) {
    bool stated = false;
    for (const auto& [name, value] : call.arguments)
      stated = stated || name == "load_in_4bit" || name == "load_in_8bit" || name == "full_finetuning";
    const auto assume = [&](const char* path, const char* value) {
      add(script_dialect(), call.callee, setting_at(call.line, path, call.callee + "()"), value);
    };
    if (!stated) assume("load_in_4bit", "true");
    if (!stated) assume("bnb_4bit_quant_type", "nf4");
    assume("dtype", "bfloat16");
    add_plain(call, "checkpoint");
  }

  // PyTorch's default is float16 on CUDA and bfloat16 on the CPU.
  void read_autocast(const PythonCall& call) {
    bool cpu = call.callee.find("cpu") != std::string::npos;
    for (const auto& [name, value] : call.arguments) {
      if (name == "dtype") return;
      cpu = cpu || (value.kind == Kind::string && value.text == "cpu");
    }
    add(pytorch_dialect(), call.callee, setting_at(call.line, "autocast", call.callee + "()"),
        cpu ? "bfloat16" : "float16");
  }

  // model.half(), model.to(torch.bfloat16): only a cast of a model tells the type of the weights.
  void read_cast(const PythonCall& call, const std::string& last) {
    const bool model = lower(call.callee).find("model") != std::string::npos || call.callee[0] == '.';
    if (last != "set_default_dtype" && (!model || call.callee == last)) return;
    std::string dtype = last == "half" ? "float16" : last == "bfloat16" ? last : "";
    for (const auto& [name, value] : call.arguments)
      if (dtype.empty() && value.kind == Kind::name && value.text.starts_with("torch.")) dtype = value.text;
    if (dtype.empty()) return;
    const std::string path = last == "to" || last == "set_default_dtype" ? last : "half";
    add(pytorch_dialect(), call.callee, setting_at(call.line, path, call.callee + "()"), dtype);
  }

  void read_optimizer(const PythonCall& call) {
    add(pytorch_dialect(), call.callee, setting_at(call.line, "optimizer", call.callee), call.callee);
    add_arguments(call, "optimizer.");
  }

  bool is_litgpt() const {
    return std::any_of(script_.imports.begin(), script_.imports.end(), [](const std::string& import) {
      return import.starts_with("lit_gpt") || import.starts_with("litgpt") || import.starts_with("lit_llama");
    });
  }

  // LitGPT's old scripts: def setup(precision=..., checkpoint_dir=Path("checkpoints/..."))
  void read_function(const PythonCall& call) {
    if (!is_litgpt() || (call.callee != "def setup" && call.callee != "def main")) return;
    for (const auto& [name, value] : call.arguments) {
      const PythonValue* inside = wrapped(value);
      const PythonValue& constant = inside ? *inside : value;
      const bool object = constant.kind == Kind::unknown || constant.kind == Kind::name || constant.kind == Kind::call;
      if (!name.empty() && !object && knows_key(litgpt_dialect(), name))
        add_value(litgpt_dialect(), call.callee, name, name, constant, true);
    }
  }

  void read_assignment(const PythonAssignment& made) {
    if (made.name.starts_with("os.environ[")) {
      const std::string variable = made.name.substr(11, made.name.size() - 12);
      if (made.value.kind == Kind::string)
        parts_.environment.push_back({{name_, made.line, made.name}, {variable, made.value.text}});
      return;
    }
    if (made.top_level && is_litgpt() && knows_key(litgpt_dialect(), made.name))
      add_value(litgpt_dialect(), made.name, made.name, made.name, made.value, true);
  }

  const std::string& name_;
  const PythonScript& script_;
  Parts parts_;
  std::vector<Part> found_;
  std::vector<std::string> assumed_;  // arguments whose values are the script's defaults
  bool has_model_ = false;
};

// The code of a notebook, and for each line of it the line in the notebook's file.
struct NotebookCode {
  std::string text;
  std::vector<int64_t> lines;

  void add(const DocumentNode& piece) {
    for (size_t start = 0; start < piece.text.size();) {
      const size_t end = std::min(piece.text.find('\n', start), piece.text.size());
      const std::string line = piece.text.substr(start, end - start);
      const size_t first = line.find_first_not_of(' ');
      const bool magic = first != std::string::npos && (line[first] == '%' || line[first] == '!');
      text += (magic ? "" : line) + "\n";
      lines.push_back(piece.line);
      start = end + 1;
    }
  }
};

}  // namespace

Parts read_python(const std::string& name, const std::string& text) {
  const PythonScript script = read_python_calls(text, name);
  Parts parts = ScriptReader(name, script).read();
  if (parts.parts.empty())
    throw Error(ErrorKind::format, fmt::format("{}:1: no call of a system that doctor reads", name),
                "give the script that makes TrainingArguments, loads the model or builds its DataLoader");
  return parts;
}

Parts read_notebook(const std::string& name, const std::string& text) {
  const DocumentNode root = parse_json_document(text, name);
  const DocumentNode* cells = root.find("cells");
  if (!cells) throw Error(ErrorKind::format, fmt::format("{}:1: no notebook: it has no cells", name), "check the path");
  NotebookCode code;
  for (const DocumentNode& cell : cells->items) {
    const DocumentNode* kind = cell.find("cell_type");
    const DocumentNode* source = cell.find("source");
    if (!kind || kind->text != "code" || !source) continue;
    if (source->kind == DocumentNode::Kind::scalar) code.add(*source);
    for (const DocumentNode& item : source->items) code.add(item);
  }
  Parts parts = read_python(name, code.text);
  const auto place = [&](Origin& origin) {
    if (origin.line >= 1 && origin.line <= static_cast<int64_t>(code.lines.size()))
      origin.line = code.lines[static_cast<size_t>(origin.line - 1)];
  };
  for (Part& part : parts.parts)
    for (Setting& setting : part.settings) place(setting.origin);
  for (KeyNote& note : parts.irrelevant) place(note.origin);
  for (auto& [origin, variable] : parts.environment) place(origin);
  return parts;
}

}  // namespace headroom::doctor
