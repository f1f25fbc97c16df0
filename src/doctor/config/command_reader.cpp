#include "doctor/config/command_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "doctor/config/dialects.h"

namespace headroom::doctor {
namespace {

bool contains(std::string_view words, std::string_view word) {
  size_t start = 0;
  while ((start = words.find_first_not_of(' ', start)) != std::string_view::npos) {
    const size_t end = std::min(words.find(' ', start), words.size());
    if (words.substr(start, end - start) == word) return true;
    start = end;
  }
  return false;
}

bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !(word[1] >= '0' && word[1] <= '9') && word[1] != '.';
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool is_file_name(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
}

// Walks the words of one command.
class CommandReader {
 public:
  CommandReader(const std::vector<CommandWord>& words, const std::string& name, Parts& parts)
      : words_(words), name_(name), parts_(parts) {}

  void read(const std::string& image) {
    if (!image.empty() && read_image(image)) return;
    while (at_ < words_.size() && step()) {
    }
  }

 private:
  const std::string& word(size_t ahead = 0) const {
    static const std::string kNone;
    return at_ + ahead < words_.size() ? words_[at_ + ahead].text : kNone;
  }

  // Skips one wrapper. Returns false when the program was read or is unknown.
  bool step() {
    const std::string program = base_name(word());
    if (contains("then do else time exec nohup sudo env command { ! nice", program)) return skip(1);
    if (word().find('=') != std::string::npos && !is_option(word())) return read_assignment();
    if (program == "uv" || program == "poetry" || program == "pipenv" || program == "pdm")
      return skip(word(1) == "run" ? 2 : 99999);
    if (program == "conda" || program == "mamba") return skip_options("run", "n p name prefix");
    if (program == "mpirun" || program == "mpiexec") return skip_options("", "np n H x hostfile bind-to map-by mca");
    if (program == "numactl" || program == "taskset" || program == "stdbuf") return skip_options("", "");
    if (program == "srun" || program == "salloc") return launcher(slurm_dialect(), "", 1);
    if (program == "docker" || program == "podman") return read_docker();
    if (program == "singularity" || program == "apptainer") return skip_container();
    if (program == "torchrun") return launcher(torchrun_dialect(), kTorchFlags, 1);
    if (program == "deepspeed") {
      parts_.facts["deepspeed"] = "true";
      return launcher(torchrun_dialect(), kTorchFlags, 1);
    }
    if (program == "accelerate" || program == "accelerate-launch")
      return program == "accelerate" && word(1) != "launch"
                 ? false
                 : launcher(accelerate_launch_dialect(), kAccelerateFlags, program == "accelerate" ? 2 : 1);
    if (program.starts_with("python")) return read_python();
    return read_program(program);
  }

  static constexpr std::string_view kTorchFlags =
      "standalone use_env no_python m module run_path no_local_rank force_multi enable_each_rank_log no_ssh "
      "bind_cores_to_rank l elastic_training save_pid";
  static constexpr std::string_view kAccelerateFlags =
      "multi_gpu use_fsdp use_deepspeed cpu quiet m module no_python debug tpu same_network tpu_use_cluster "
      "enable_cpu_affinity use_xpu ipex use_megatron_lm use_parallelism_config";

  bool skip(size_t count) {
    at_ = count > words_.size() - at_ ? words_.size() : at_ + count;
    return true;
  }

  bool read_assignment() {
    const size_t equals = word().find('=');
    note_environment(words_[at_], word().substr(0, equals), word().substr(equals + 1));
    return skip(1);
  }

 public:
  void note_environment(const CommandWord& where, const std::string& variable, const std::string& value) {
    parts_.environment.push_back({{name_, where.line, variable}, {variable, value}});
  }

 private:
  // Options of a wrapper that do not matter here; those in `valued` take a word.
  bool skip_options(const std::string& subcommand, std::string_view valued) {
    skip(1);
    if (!subcommand.empty() && word() == subcommand) skip(1);
    while (at_ < words_.size() && is_option(word())) {
      const std::string option = word().substr(word().find_first_not_of('-'));
      skip(contains(valued, option) ? 2 : 1);
    }
    return at_ < words_.size();
  }

  bool skip_container() {
    skip(2);
    while (at_ < words_.size() && is_option(word())) {
      const bool valued = contains("-B --bind --env -H --home --pwd -W --workdir --overlay --env-file", word());
      skip(valued ? 2 : 1);
    }
    skip(1);  // the image
    return at_ < words_.size();
  }

  bool read_docker() {
    if (word(1) != "run" && word(1) != "exec") return false;
    skip(2);
    while (at_ < words_.size() && is_option(word())) {
      const std::string option = word();
      const size_t equals = option.find('=');
      const std::string key = table_key(option.substr(0, equals));
      const bool flag =
          equals != std::string::npos || contains("rm it i t d ti itd privileged init detach interactive tty", key);
      if (key == "gpus" && !flag) add_docker_gpus(words_[at_], word(1));
      if (key == "gpus" && equals != std::string::npos) add_docker_gpus(words_[at_], option.substr(equals + 1));
      if ((key == "e" || key == "env") && !flag && word(1).find('=') != std::string::npos) {
        const std::string& setting = word(1);
        note_environment(words_[at_ + 1], setting.substr(0, setting.find('=')), setting.substr(setting.find('=') + 1));
      }
      skip(flag ? 1 : 2);
    }
    const std::string image = word();
    skip(1);
    return read_image(image) ? false : at_ < words_.size();
  }

  void add_docker_gpus(const CommandWord& where, const std::string& value) {
    Setting setting;
    setting.path = "num_processes";
    setting.origin = {name_, where.line, where.text};
    setting.text = value.starts_with("device=") ? value.substr(7) : value;
    std::erase(setting.text, '"');
    if (setting.text.starts_with("device=")) setting.text = setting.text.substr(7);
    setting.items = {setting.text};
    if (setting.text.find(',') == std::string::npos && value.find("device=") != std::string::npos) setting.text = "1";
    parts_.parts.push_back({&accelerate_dialect(), Rank::launcher, {setting}, name_, "docker run --gpus"});
  }

  // Images whose entry point is a server: the arguments are the server's options.
  bool read_image(const std::string& image) {
    const bool options_follow = is_option(word()) || word().empty();
    if (!options_follow) return false;
    if (image.find("vllm") != std::string::npos) return program(vllm_dialect(), "image " + image);
    if (image.find("llama.cpp") != std::string::npos || image.find("llama-cpp") != std::string::npos)
      return program(llama_server_dialect(), "image " + image);
    if (image.find("text-generation-inference") != std::string::npos) return program(tgi_dialect(), "image " + image);
    return false;
  }

  Setting option_setting(const CommandWord& where, const std::string& key) const {
    Setting setting;
    setting.path = table_key(key);
    setting.origin = {name_, where.line, key};
    return setting;
  }
  void set_value(Setting& setting, const CommandWord& value) const {
    setting.text = value.text;
    setting.items = {value.text};
    if (value.unset_variable)
      setting.unreadable = fmt::format("'{}' is set outside this text", value.text.substr(0, 60));
  }

  // The option at at_ with its value. Those in `flags` never take a value.
  Setting take_option(std::string_view flags, bool many) {
    const CommandWord& where = words_[at_];
    const size_t equals = where.text.find('=');
    Setting setting = option_setting(where, where.text.substr(0, equals));
    if (equals != std::string::npos) {
      CommandWord value = where;
      value.text = where.text.substr(equals + 1);
      set_value(setting, value);
      ++at_;
      return setting;
    }
    ++at_;
    const bool has_value = at_ < words_.size() && !is_option(words_[at_].text) && !contains(flags, setting.path);
    if (!has_value) {
      setting.text = "true";
      setting.items = {"true"};
      return setting;
    }
    set_value(setting, words_[at_++]);
    while (many && at_ < words_.size() && !is_option(words_[at_].text)) {
      setting.is_list = true;
      setting.items.push_back(words_[at_].text);
      setting.text += "," + words_[at_++].text;
    }
    return setting;
  }

  // Options before the program that the launcher starts.
  bool launcher(const Dialect& dialect, std::string_view flags, size_t own_words) {
    Part part{&dialect, Rank::launcher, {}, name_, "command `" + base_name(word()) + "`"};
    skip(own_words);
    bool module = false;
    while (at_ < words_.size() && is_option(word())) {
      // The script itself is never an option's value.
      const bool script_next =
          word(1).ends_with(".py") ||
          (dialect.name == "Slurm" && contains("python python3 torchrun vllm accelerate bash", base_name(word(1))));
      module = module || word() == "-m" || word() == "--module";
      if (word() == "--") {
        skip(1);
        break;
      }
      part.settings.push_back(take_option(script_next ? table_key(word()) : std::string(flags), false));
    }
    parts_.parts.push_back(std::move(part));
    if (at_ >= words_.size()) return false;
    if (module) return read_module();
    if (word().ends_with(".py")) return read_script();
    return true;
  }

  bool read_python() {
    skip(1);
    while (at_ < words_.size() && is_option(word()) && word() != "-m")
      skip(word() == "-c" || word() == "-W" || word() == "-X" ? 2 : 1);
    if (word() == "-m") {
      skip(1);
      return read_module();
    }
    return at_ < words_.size() && word().ends_with(".py") ? read_script() : false;
  }

  // at_ is at the module's name.
  bool read_module() {
    const std::string module = word();
    if (module.starts_with("torch.distributed")) return launcher(torchrun_dialect(), kTorchFlags, 1);
    if (module.starts_with("accelerate")) return launcher(accelerate_launch_dialect(), kAccelerateFlags, 1);
    skip(1);
    if (module.starts_with("vllm.entrypoints")) return program(vllm_dialect(), "module " + module);
    if (module.starts_with("sglang")) return program(sglang_dialect(), "module " + module);
    if (module.starts_with("axolotl")) return program(axolotl_dialect(), "module " + module);
    if (module.starts_with("llamafactory")) return program(llamafactory_dialect(), "module " + module);
    if (module.starts_with("oumi")) return oumi("module " + module);
    if (module.starts_with("llama_cpp.server")) return program(llama_server_dialect(), "module " + module);
    if (module.starts_with("trl")) return program(trl_dialect(), "module " + module);
    return any_script("module " + module, module);
  }

  // A script that downloads, converts or tokenises; it neither trains nor serves.
  static bool prepares(const std::string& script) {
    for (const char* start : {"prepare", "download", "convert", "preprocess", "tokenize", "split_"})
      if (script.starts_with(start)) return true;
    return false;
  }

  // at_ is at the script's name.
  bool read_script() {
    const std::string script = word();
    if (prepares(base_name(script))) return false;
    const CommandWord& where = words_[at_];
    const std::string base = base_name(script);
    skip(1);
    if (base == "deepy.py") {
      if (word().ends_with(".py")) skip(1);
      while (at_ < words_.size()) {
        parts_.references.push_back({{name_, words_[at_].line, "deepy.py"}, word()});
        skip(1);
      }
      return false;
    }
    parts_.references.push_back({{name_, where.line, "the script"}, script});
    if (script.find("litgpt") != std::string::npos || script.find("lit_gpt") != std::string::npos ||
        script.starts_with("finetune/") || script.starts_with("pretrain/")) {
      parts_.facts["litgpt.script"] = base;
      parts_.notes.push_back(script + ": 4 rows at a time, the default of LitGPT's scripts of 2023");
      return litgpt_options("script " + script, base.substr(0, base.size() - 3));
    }
    return any_script("script " + script, base);
  }

  // Whether one of the following words is an option of the list.
  bool follows(std::string_view options) const {
    for (size_t i = at_; i < words_.size(); ++i)
      if (contains(options, table_key(words_[i].text.substr(0, words_[i].text.find('='))))) return true;
    return false;
  }

  // Whether the program has none of the options that every training with TrainingArguments has.
  bool foreign_script() const {
    if (follows("enable_fsdp batch_size_training pure_bf16")) return true;  // llama-recipes
    for (size_t i = at_; i < words_.size(); ++i)
      if (is_file_name(words_[i].text)) return false;
    return !follows(
        "output_dir per_device_train_batch_size per_device_eval_batch_size do_train do_eval "
        "model_name_or_path deepspeed dataset_train_split num_train_epochs");
  }

  // Training scripts of toolboxes for images, by options that TrainingArguments lacks: YOLO's, detectron2's,
  // MMDetection's.
  bool of_a_toolbox() const {
    if (follows("hyp imgsz img_size img cfg_options ims_per_batch") && !follows("model_name_or_path output_dir"))
      return true;
    return follows("weights") && follows("data cfg") && follows("batch_size batch");
  }

  // Evaluation harnesses, by module name.
  static bool evaluates(const std::string& script) {
    for (const char* start : {"lm_eval", "lmms_eval", "vlmeval", "opencompass"})
      if (script.starts_with(start)) return true;
    return false;
  }

  // Scripts that only predict, by name.
  static bool predicts(const std::string& script) {
    for (const char* start : {"infer", "predict", "evaluate", "eval.", "eval_", "test.", "test_", "demo", "generate",
                              "gradio", "sample.", "sample_", "txt2img", "img2img", "text2img", "run_infer"})
      if (script.starts_with(start)) return true;
    return false;
  }

  // OpenRLHF's default rows per device, by the trainer's module or script.
  static const char* rows_of_openrlhf(const std::string& name) {
    if (name.find("train_ppo") != std::string::npos) return "4";
    return name.find("train_rm") != std::string::npos || name.find("train_prm") != std::string::npos ? "1" : "8";
  }

  // Options of TrainingArguments, or of TRL if the script's name or an option shows it.
  bool any_script(const std::string& evidence, const std::string& script) {
    if (evidence.find("openrlhf") != std::string::npos) parts_.facts["script.openrlhf"] = rows_of_openrlhf(script);
    if (script == "train_bash.py" || follows("finetuning_type infer_backend"))
      return program(llamafactory_dialect(), evidence);
    if (foreign_script() || of_a_toolbox() || evaluates(script)) {
      parts_.facts["script.foreign"] = "true";
      if (evaluates(script) || predicts(lower(script))) parts_.facts["script.task"] = "infer";
    }
    if (follows("cutoff_len") && follows("micro_batch_size")) return program(alpaca_lora_dialect(), evidence);
    bool trl = false;
    for (const char* sign : {"sft", "dpo", "grpo", "kto", "rloo", "reward_model", "orpo"})
      trl = trl || lower(script).find(sign) != std::string::npos;
    for (size_t i = at_; i < words_.size(); ++i) {
      const std::string key = table_key(words_[i].text.substr(0, words_[i].text.find('=')));
      trl = trl ||
            contains("use_peft lora_target_modules max_completion_length num_generations dataset_train_split", key);
    }
    return program(trl ? trl_dialect() : hf_trainer_dialect(), evidence, true);
  }

  // "server" and "main" are old names of llama.cpp's programs, and many a word of other texts.
  bool names_a_model() const {
    return std::any_of(words_.begin() + static_cast<std::ptrdiff_t>(at_), words_.end(), [](const CommandWord& each) {
      return each.text == "-m" || each.text == "-hf" || each.text == "--model" || each.text.starts_with("--model=");
    });
  }

  bool read_program(const std::string& name) {
    const std::string sub = word(1);
    if (name == "vllm") {
      if (sub != "serve" && sub != "bench") return false;
      skip(sub == "serve" ? 2 : 3);
      return program(vllm_dialect(), "command `vllm " + sub + "`");
    }
    if (name == "sglang" && sub == "serve") return skip(2) && program(sglang_dialect(), "command `sglang serve`");
    if (contains("llama-server llama-cli llama-bench llama-run", name) ||
        (contains("server main", name) && names_a_model()))
      return skip(1) && program(llama_server_dialect(), "command `" + name + "`");
    if (name == "text-generation-launcher") return skip(1) && program(tgi_dialect(), "command `" + name + "`");
    if (name == "litgpt") return skip(2) && litgpt_options("command `litgpt " + sub + "`", sub);
    if (name == "oumi") return skip(1) && oumi("command `oumi`");
    if (name == "axolotl") return skip(2) && program(axolotl_dialect(), "command `axolotl " + sub + "`");
    if (name == "llamafactory-cli" || name == "lmf")
      return skip(2) && program(llamafactory_dialect(), "command `" + name + "`");
    if (name == "trl") {
      skip(2);
      parts_.facts["trl.objective"] = sub;
      return program(trl_dialect(), "command `trl " + sub + "`", true);
    }
    if (name == "tune" && sub == "run") return skip(2) && tune();
    return false;
  }

  bool litgpt_options(const std::string& evidence, const std::string& subcommand) {
    parts_.facts["litgpt.command"] = subcommand;
    program(litgpt_dialect(), evidence);
    return false;
  }

  bool oumi(const std::string& evidence) {
    // oumi distributed torchrun -m oumi train -c FILE
    if (word() == "distributed") return skip(1);
    skip(1);
    return program(oumi_dialect(), evidence);
  }

  // tune run [--nproc_per_node N] RECIPE --config FILE key=value ...
  bool tune() {
    Part part{&torchtune_dialect(), Rank::command, {}, name_, "command `tune run`"};
    while (at_ < words_.size() && is_option(word())) part.settings.push_back(take_option("standalone", false));
    if (at_ < words_.size()) {
      Setting recipe = option_setting(words_[at_], "recipe");
      set_value(recipe, words_[at_++]);
      part.settings.push_back(std::move(recipe));
    }
    parts_.parts.push_back(std::move(part));
    return program(torchtune_dialect(), "command `tune run`");
  }

  // The remaining words are options and arguments of a known program. Returns false: the command ends here.
  bool program(const Dialect& dialect, const std::string& evidence, bool many = false) {
    Part part{&dialect, Rank::command, {}, name_, evidence};
    size_t positional = 0;
    while (at_ < words_.size()) {
      if (is_option(word())) {
        Setting setting = take_option("", many);
        if (setting.path == "c" && dialect.system != System::llama_server) setting.path = "config";
        if (setting.path == "config" && is_file_name(setting.text)) {
          parts_.references.push_back({setting.origin, setting.text});
          parts_.irrelevant.push_back({setting.origin, "names the file whose keys are read", setting.text});
        } else if (setting.path == "config" && dialect.system == System::torchtune) {
          parts_.irrelevant.push_back({setting.origin, "names a recipe of torchtune", setting.text});
        } else {
          part.settings.push_back(std::move(setting));
        }
        continue;
      }
      argument(dialect, part, positional++);
      ++at_;
    }
    parts_.parts.push_back(std::move(part));
    return false;
  }

  void argument(const Dialect& dialect, Part& part, size_t index) {
    const CommandWord& where = words_[at_];
    const size_t equals = where.text.find('=');
    if (equals != std::string::npos && equals > 0) {  // key=value
      Setting setting = option_setting(where, where.text.substr(0, equals));
      CommandWord value = where;
      value.text = where.text.substr(equals + 1);
      set_value(setting, value);
      part.settings.push_back(std::move(setting));
    } else if (is_file_name(where.text)) {
      parts_.references.push_back({{name_, where.line, where.text}, where.text});
      parts_.irrelevant.push_back({{name_, where.line, where.text}, "names the file whose keys are read", ""});
    } else if (index == 0 && (dialect.system == System::vllm || dialect.system == System::litgpt)) {
      const bool pretrains = parts_.facts["litgpt.command"] == "pretrain";
      Setting setting = option_setting(where, dialect.system == System::vllm ? "model"
                                              : pretrains                    ? "model_name"
                                                                             : "checkpoint_dir");
      set_value(setting, where);
      part.settings.push_back(std::move(setting));
    } else {
      parts_.irrelevant.push_back({{name_, where.line, where.text}, "an argument without a name", ""});
    }
  }

  const std::vector<CommandWord>& words_;
  const std::string& name_;
  Parts& parts_;
  size_t at_ = 0;
};

// Reads #SBATCH lines as settings of Slurm.
Part read_sbatch(const std::string& name, const std::string& text) {
  Part part{&slurm_dialect(), Rank::launcher, {}, name, "#SBATCH lines"};
  int64_t line = 0;
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = std::min(text.find('\n', start), text.size());
    std::string content = text.substr(start, end - start);
    start = end + 1;
    ++line;
    if (!content.starts_with("#SBATCH")) continue;
    content = content.substr(7);
    if (const size_t comment = content.find(" #"); comment != std::string::npos) content.resize(comment);
    const std::vector<std::string> words = split_words(content, " \t\r=");
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i][0] != '-') continue;
      Setting setting;
      setting.path = table_key(words[i]);
      setting.origin = {name, line, words[i]};
      setting.text = i + 1 < words.size() && words[i + 1][0] != '-' ? words[i + 1] : "true";
      setting.items = {setting.text};
      part.settings.push_back(std::move(setting));
    }
  }
  return part;
}

}  // namespace

void read_command(const std::vector<CommandWord>& words, const std::string& name, const std::string& image,
                  Parts& parts) {
  CommandReader(words, name, parts).read(image);
}

Parts read_command_text(const std::string& name, const std::string& text) {
  Parts parts;
  Part slurm = read_sbatch(name, text);
  const bool in_slurm = !slurm.settings.empty();
  if (in_slurm) parts.parts.push_back(std::move(slurm));
  bool known = false;
  for (const ShellCommand& command : parse_shell_commands(text, name)) {
    const size_t before = parts.parts.size();
    CommandReader reader(command.words, name, parts);
    reader.read("");
    const bool program = parts.parts.size() > before;
    known = known || program;
    if (!program) continue;
    for (const auto& [variable, value] : command.environment) {
      const CommandWord where = command.assignments.empty() ? command.words.front() : command.assignments.front();
      reader.note_environment(where, variable, value);
    }
  }
  if (!known && !in_slurm)
    throw Error(ErrorKind::format, fmt::format("{}:1: no command of a system that doctor reads", name),
                "give the command that starts the training or the server, or the script that holds it");
  return parts;
}

}  // namespace headroom::doctor
