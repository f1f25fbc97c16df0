#include "doctor/config/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "doctor/config/command_reader.h"
#include "doctor/config/dialects.h"
#include "doctor/config/document_reader.h"
#include "doctor/config/environment.h"
#include "doctor/config/python_reader.h"
#include "doctor/config/values.h"
#include "formats/document.h"
#include "formats/file.h"

namespace headroom::doctor {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxSources = 16;

Parts read_source(const SourceRead& source) {
  switch (source.kind) {
    case SourceKind::yaml:
      return read_document(source.name, source.text, false);
    case SourceKind::json:
      return read_document(source.name, source.text, true);
    case SourceKind::python:
      return read_python(source.name, source.text);
    case SourceKind::notebook:
      return read_notebook(source.name, source.text);
    case SourceKind::command:
      break;
  }
  return read_command_text(source.name, source.text);
}

// Quotes a word of argv for a shell.
std::string quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"$\\;&|<>()#*?`") == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// Resolves `path` against `folder` and the three folders above it; the result must be a small regular file inside that
// folder.
std::optional<fs::path> find_reference(const fs::path& folder, const fs::path& path) {
  if (path.is_absolute() || path.empty()) return std::nullopt;
  std::error_code status;
  fs::path root = fs::weakly_canonical(folder.empty() ? fs::path(".") : folder, status);
  for (int up = 0; up < 4 && !status && !root.empty(); ++up) {
    const fs::path found = fs::canonical(root / path, status);
    if (!status && fs::is_regular_file(found, status)) {
      const auto [end, unused] = std::mismatch(root.begin(), root.end(), found.begin(), found.end());
      if (end == root.end()) return root / path;
    }
    status.clear();
    if (root == root.parent_path()) break;
    root = root.parent_path();
  }
  return std::nullopt;
}

// Collects the parts of all sources, reads the files that they refer to, and applies everything in the order of
// precedence.
class Session {
 public:
  void add(SourceRead source, fs::path folder) {
    if (reading_.sources.size() >= kMaxSources)
      throw Error(ErrorKind::usage, fmt::format("more than {} configurations together", kMaxSources),
                  "give fewer files");
    Parts parts;
    try {
      parts = read_source(source);
    } catch (const Error& e) {
      // A script that a command names may have nothing that doctor knows; the command's options are enough.
      if (!source.referred) throw;
      reading_.notes.push_back(fmt::format("{} was not used: {}", source.name, e.what()));
      return;
    }
    reading_.sources.push_back(std::move(source));
    for (const auto& [origin, path] : parts.references)  // Oumi uses a scheme for files of its own repository
      pending_.push_back({origin, path.starts_with("oumi://") ? path.substr(7) : path, folder});
    for (const std::string& note : parts.notes) reading_.notes.push_back(note);
    folders_[reading_.sources.back().name] = std::move(folder);
    all_.push_back(std::move(parts));
  }

  void add_parts(Parts parts, SourceRead source) {
    reading_.sources.push_back(std::move(source));
    all_.push_back(std::move(parts));
  }

  ConfigReading finish() {
    Draft draft = apply();
    // References in files ("deepspeed: ds.json") are known only after the keys have been applied.
    for (const auto& [origin, path] : draft.references) pending_.push_back({origin, path, folders_[origin.file]});
    while (!pending_.empty() && read_pending()) draft = apply();
    imply_named(draft);
    reading_.job = std::move(draft.job);
    return std::move(reading_);
  }

 private:
  struct Pending {
    Origin origin;
    std::string path;
    fs::path folder;
  };

  // What the name of a missing DeepSpeed file tells.
  struct NamedStage {
    std::optional<Sharding> stage;
    bool offload = false;
    Origin origin;
  };

  // Returns true when another file was read.
  bool read_pending() {
    bool more = false;
    for (const Pending& pending : std::exchange(pending_, {})) {
      if (!seen_.insert(pending.path).second || is_given(fs::path(pending.path).filename())) continue;
      const std::optional<fs::path> found = find_reference(pending.folder, pending.path);
      if (!found && read_by_name(pending)) continue;
      if (!found) {
        reading_.notes.push_back(fmt::format("{} names {}, which is not there: give it too, for what it sets",
                                             pending.origin.key, pending.path));
        if (pending.origin.key == "the script")
          reading_.missing_script = pending.path;
        else
          reading_.missing.push_back(pending.path);
        continue;
      }
      SourceRead source;
      source.name = found->string();
      source.referred = true;
      if (already_read(*found)) continue;
      try {
        source.text = read_text_file(*found);
      } catch (const Error& e) {
        reading_.notes.push_back(fmt::format("{} was not used: {}", source.name, e.what()));
        continue;
      }
      source.kind = source_kind(source.name, source.text);
      add(std::move(source), found->parent_path());
      more = true;
    }
    return more;
  }
  // "ds_z3_offload_config.json": the name tells what the file sets.
  bool read_by_name(const Pending& pending) {
    const std::string name = lower(fs::path(pending.path).filename().string());
    if (!name.ends_with(".json") || pending.origin.key.find("deepspeed") == std::string::npos) return false;
    for (const char* sign : {"z", "zero", "zero_", "zero-", "stage", "stage_", "zero_stage"})
      for (const std::string digit : {"1", "2", "3"})
        if (name.find(sign + digit) != std::string::npos) named_.stage = zero_stage(digit);
    named_.offload = name.find("offload") != std::string::npos;
    named_.origin = pending.origin;
    if (named_.stage)
      reading_.notes.push_back(fmt::format("{} is not there: read by its name alone; give it too", pending.path));
    return named_.stage.has_value();
  }

  // Only where no file that was read sets it.
  void imply_named(Draft& draft) const {
    if (!named_.stage) return;
    ParallelSettings& parallel = draft.job.parallel;
    if (parallel.sharding == Sharding::ddp) parallel.sharding.reset();
    draft.imply(parallel.sharding, *named_.stage, "sharding", named_.origin);
    parallel.deepspeed = true;
    if (!named_.offload) return;
    draft.imply(parallel.offload_optimizer, Offload::cpu, "offload_optimizer", named_.origin);
    if (named_.stage == Sharding::zero3)
      draft.imply(parallel.offload_parameters, Offload::cpu, "offload_parameters", named_.origin);
  }

  // Whether the user also gave a file of that name.
  bool is_given(const fs::path& file_name) const {
    return std::any_of(reading_.sources.begin(), reading_.sources.end(), [&](const SourceRead& source) {
      return !source.referred && fs::path(source.name).filename() == file_name;
    });
  }
  bool already_read(const fs::path& path) const {
    std::error_code status;
    return std::any_of(reading_.sources.begin(), reading_.sources.end(),
                       [&](const SourceRead& source) { return fs::equivalent(source.name, path, status); });
  }

  Draft apply() {
    Draft draft;
    std::vector<const Part*> parts;
    reading_.keys = 0;
    for (const Parts& source : all_) {
      for (const Part& part : source.parts) parts.push_back(&part);
      for (const auto& [name, text] : source.facts)
        if (all_.size() == 1 || name != "script.task") remember_fact(draft, name, text);
      reading_.keys += static_cast<int64_t>(source.irrelevant.size() + source.environment.size());
    }
    std::stable_sort(parts.begin(), parts.end(), [](const Part* a, const Part* b) { return a->rank < b->rank; });
    reading_.evidence.clear();
    for (const Part* part : parts) {
      reading_.evidence.push_back(
          {part->source, part->dialect->system, std::string(part->dialect->name), part->evidence});
      for (const Setting& setting : part->settings) apply_setting(*part->dialect, setting, draft);
      reading_.keys += static_cast<int64_t>(part->settings.size());
    }
    draft.job.system = system_of(parts);
    // An unrelated program's options look like those of TrainingArguments.
    if (draft.fact("script.foreign") && (draft.job.system == System::hf_trainer || draft.job.system == System::trl)) {
      draft.job.system = System::pytorch_script;
      std::erase_if(draft.job.keys.corrected,
                    [](const KeyNote& note) { return note.text.find("TrainingArguments") != std::string::npos; });
    }
    for (const Parts& source : all_) {
      for (const KeyNote& note : source.irrelevant) draft.job.keys.irrelevant.push_back(note);
      for (const auto& [origin, variable] : source.environment)
        apply_environment(origin, variable.first, variable.second, draft);
    }
    finish_all(parts, draft);
    return draft;
  }

  static void remember_fact(Draft& draft, const std::string& name, const std::string& text) {
    Setting setting;
    setting.text = text;
    setting.items = {text};
    draft.facts[name] = std::move(setting);
    if (name == "trl.objective") draft.job.objective = text;
    if (name == "script.labels") draft.job.architecture["labels"] = 2;
    if (name == "script.task") draft.job.task = Task::infer;
    if (name == "script.gradients") draft.extras["no_grad"] = "false";
    if (name == "script.library") draft.extras["library"] = text;
    if (name == "script.apex") draft.extras["half_precision_backend"] = "apex";
    if (name == "litgpt.command" && text == "pretrain") draft.job.objective = "pretrain";
  }

  // The system of the heaviest part; launchers do not count, DeepSpeed's and Accelerate's files weigh least.
  static System system_of(const std::vector<const Part*>& parts) {
    System system = System::unknown;
    int weight = 0;
    for (const Part* part : parts) {
      const System candidate = part->dialect->system;
      if (candidate == System::unknown || part->dialect == &accelerate_launch_dialect()) continue;
      const bool weak = candidate == System::accelerate || candidate == System::deepspeed;
      const int here = weak                                  ? 1
                       : candidate == System::pytorch_script ? 2
                       : part->rank == Rank::adapter         ? 3
                       : candidate == System::hf_trainer     ? 4
                                                             : 5;
      if (here >= weight) {
        weight = here;
        system = candidate;
      }
    }
    return system;
  }

  // Launchers come last: what they imply holds only where nothing else sets it.
  static void finish_all(const std::vector<const Part*>& parts, Draft& draft) {
    std::vector<const Dialect*> dialects;
    bool deepspeed = false;
    for (const Part* part : parts) {
      if (part->rank != Rank::launcher) dialects.push_back(part->dialect);
      deepspeed = deepspeed || part->dialect == &deepspeed_dialect();
    }
    for (const Part* part : parts)
      if (part->rank == Rank::launcher && part->dialect != &torchrun_dialect()) dialects.push_back(part->dialect);
    dialects.push_back(&torchrun_dialect());
    if (deepspeed || draft.fact("deepspeed") || draft.extras["distributed_type"] == "deepspeed")
      draft.extras["deepspeed"] = "true";
    finish_dialects(dialects, draft);
    imply_quantization(draft);
    draft.take_extras();
  }

  // The weight type in the name of a GGUF file or in a repository's tag: "model-Q4_K_M.gguf", "model:q8_0".
  static std::string_view gguf_type(const std::string& name) {
    for (const std::string_view type :
         {"q2_k", "q3_k_s", "q3_k_m", "q3_k_l", "q4_k_s",  "q4_k_m", "q5_k_s",  "q5_k_m", "q6_k",   "q8_0",
          "q4_0", "q4_1",   "q5_0",   "q5_1",   "iq2_xxs", "iq2_xs", "iq3_xxs", "iq3_s",  "iq4_xs", "iq4_nl"})
      if (name.find(type) != std::string::npos) return type;
    return {};
  }

  // Published quantised weights say so in their name.
  static void imply_quantization(Draft& draft) {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"-awq", "awq"},   {"-gptq", "gptq"},  {"-aqlm", "aqlm"},  {"-fp8", "fp8"},
        {"-int8", "int8"}, {"w8a16", "int8"},  {"w8a8", "int8"},   {"-int4", "int4"},
        {"w4a16", "int4"}, {"bnb-nf4", "nf4"}, {"bnb-4bit", "nf4"}};
    const std::string model = lower(draft.job.model);
    if (const std::string_view type = gguf_type(model); !type.empty())
      draft.imply(draft.job.precision.quantization, std::string(type), "quantization", draft.job.keys.origins["model"]);
    for (const auto& [sign, kind] : kNames)
      if (model.find(sign) != std::string::npos)
        draft.imply(draft.job.precision.quantization, std::string(kind), "quantization",
                    draft.job.keys.origins["model"]);
  }

  ConfigReading reading_;
  std::vector<Parts> all_;
  std::vector<Pending> pending_;
  NamedStage named_;
  std::map<std::string, fs::path> folders_;
  std::set<std::string> seen_;
};

bool has_line_starting(const std::string& text, std::initializer_list<std::string_view> starts) {
  size_t line = 0;
  while (line < text.size()) {
    for (const std::string_view start : starts)
      if (std::string_view(text).substr(line, start.size()) == start) return true;
    const size_t end = text.find('\n', line);
    if (end == std::string::npos) break;
    line = end + 1;
  }
  return false;
}

constexpr std::pair<SourceKind, std::string_view> kPassages[] = {{SourceKind::yaml, "the YAML in the text"},
                                                                 {SourceKind::json, "the JSON in the text"},
                                                                 {SourceKind::python, "the Python in the text"}};

}  // namespace

std::string passage_name(SourceKind kind, int64_t line) {
  const auto named = std::find_if(std::begin(kPassages), std::end(kPassages),
                                  [&](const auto& passage) { return passage.first == kind; });
  HR_CHECK(named != std::end(kPassages), "a passage that is neither YAML, JSON nor Python");
  return fmt::format("{} (line {})", named->second, line);
}

std::optional<SourceKind> kind_of_name(const std::string& name) {
  for (const auto& [kind, words] : kPassages)
    if (name.starts_with(words)) return kind;
  const std::string suffix = lower(fs::path(name).extension().string());
  if (suffix == ".json" || suffix == ".jsonl") return SourceKind::json;
  if (suffix == ".yaml" || suffix == ".yml") return SourceKind::yaml;
  if (suffix == ".py") return SourceKind::python;
  if (suffix == ".ipynb") return SourceKind::notebook;
  if (suffix == ".sh" || suffix == ".sbatch" || suffix == ".slurm" || suffix == ".bash") return SourceKind::command;
  return std::nullopt;
}

SourceKind source_kind(const std::string& name, const std::string& text) {
  if (const std::optional<SourceKind> kind = kind_of_name(name)) return *kind;
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return SourceKind::yaml;
  if (text[first] == '{') return SourceKind::json;
  if (text.compare(first, 2, "#!") == 0 || has_line_starting(text, {"#SBATCH"})) return SourceKind::command;
  if (has_line_starting(text, {"import ", "from ", "def ", "class "})) return SourceKind::python;
  const size_t word_end = std::min(text.find_first_of(" \t\r\n", first), text.size());
  const std::string word = text.substr(first, word_end - first);
  const size_t call = text.find('(');
  if (call != std::string::npos && call < text.find(':') && text.find('=') < text.find('\n', call))
    return SourceKind::python;
  if (!word.ends_with(':') && word.find(": ") == std::string::npos && word[0] != '#') return SourceKind::command;
  return SourceKind::yaml;
}

std::string system_name(System system) {
  switch (system) {
    case System::unknown:
      return "unknown";
    case System::hf_trainer:
      return "transformers";
    case System::trl:
      return "TRL";
    case System::accelerate:
      return "Accelerate";
    case System::deepspeed:
      return "DeepSpeed";
    case System::litgpt:
      return "LitGPT";
    case System::oumi:
      return "Oumi";
    case System::axolotl:
      return "axolotl";
    case System::llamafactory:
      return "LLaMA-Factory";
    case System::torchtune:
      return "torchtune";
    case System::neox:
      return "GPT-NeoX";
    case System::vllm:
      return "vLLM";
    case System::sglang:
      return "SGLang";
    case System::llama_server:
      return "llama-server";
    case System::tgi:
      return "text-generation-inference";
    case System::pytorch_script:
      return "PyTorch";
  }
  return "unknown";
}

ConfigReading read_config(const ConfigInput& input) {
  Session session;
  for (const fs::path& path : input.files) {
    SourceRead source;
    source.name = path.string();
    source.text = read_text_file(path);
    source.kind = source_kind(source.name, source.text);
    session.add(std::move(source), path.parent_path());
  }
  for (const ConfigText& text : input.texts)
    session.add({text.name, source_kind(text.name, text.text), text.text, false}, fs::path("."));
  if (!input.arguments.empty()) {
    std::string line;
    for (const std::string& word : input.arguments) line += (line.empty() ? "" : " ") + quoted(word);
    session.add({"the command line", SourceKind::command, line, false}, fs::path("."));
  }
  return session.finish();
}

ConfigReading read_config_file(const fs::path& path) { return read_config({{path}, {}, {}}); }

ConfigReading read_config_text(const std::string& name, const std::string& text) {
  return read_config({{}, {{name, text}}, {}});
}

std::vector<ConfigReading> read_config_rows(const std::string& name, const std::string& text) {
  std::vector<ConfigReading> rows;
  int64_t number = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string row = text.substr(start, end - start);
    start = end + 1;
    ++number;
    if (row.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string place = fmt::format("{}:{}", name, number);
    Session session;
    session.add_parts(read_server_row(place, parse_json_document(row, place)), {place, SourceKind::json, row, false});
    rows.push_back(session.finish());
  }
  return rows;
}

}  // namespace headroom::doctor
