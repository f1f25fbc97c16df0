#include "doctor/remedies/respelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/find_text.h"
#include "doctor/remedies/in_force.h"
#include "doctor/remedies/model_words.h"
#include "doctor/remedies/posted_arguments.h"
#include "doctor/remedies/posted_numbers.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/trainer_words.h"

namespace headroom::doctor {
namespace {

void replace_set(Remedy& remedy, std::string set) {
  if (set == remedy.set) return;
  remedy.set = std::move(set);
  remedy.settings.clear();
}

struct Spelling {
  std::string_view from, to;
};

template <size_t N>
std::string spelt(std::string text, const Spelling (&spellings)[N]) {
  for (const Spelling& each : spellings)
    for (size_t at = text.find(each.from); at != std::string::npos; at = text.find(each.from, at + each.to.size()))
      text.replace(at, each.from.size(), each.to);
  return text;
}

// A server's weights are split over as many devices as they need, or as the post counts if that is more.
void name_shards(const CaseView& view, Findings& findings) {
  if (!view.serving() || (view.incident().estimate && view.balance().limit)) return;
  const std::optional<int64_t> needed = devices_for_the_weights(view);
  const int64_t counted = devices_in_words(view.incident().log_text);
  const bool power = (counted & (counted - 1)) == 0;
  const int64_t devices = std::max(needed.value_or(1), power ? counted : 1);
  for (Remedy& remedy : findings.remedies) {
    const size_t digits = remedy.set.find_last_not_of("0123456789") + 1;
    if (remedy.name != "tensor-parallel" || devices < 2 || digits >= remedy.set.size()) continue;
    remedy.set.replace(digits, std::string::npos, std::to_string(devices));
    remedy.settings.clear();
    remedy.changes.clear();
    remedy.saves_bytes.reset();
  }
}

// vLLM's options as programs that start it as a library pass them on.
void spell_for_an_inner_engine(const CaseView& view, Findings& findings) {
  constexpr Spelling kOfHarnesses[] = {
      {"--max-model-len ", "max_model_len="},   {"--gpu-memory-utilization ", "gpu_memory_utilization="},
      {"--max-num-seqs ", "max_num_seqs="},     {"--max-num-batched-tokens ", "max_num_batched_tokens="},
      {"--kv-cache-dtype ", "kv_cache_dtype="}, {"--tensor-parallel-size ", "tensor_parallel_size="},
      {"--enforce-eager", "enforce_eager=True"}};
  constexpr Spelling kOfSwift[] = {{"--max-model-len ", "--vllm_max_model_len "},
                                   {"--gpu-memory-utilization ", "--vllm_gpu_memory_utilization "},
                                   {"--max-num-seqs ", "--vllm_max_num_seqs "},
                                   {"--tensor-parallel-size ", "--vllm_tensor_parallel_size "},
                                   {"--enforce-eager", "--vllm_enforce_eager true"}};
  constexpr Spelling kOfLlamaFactory[] = {{"--max-model-len ", "vllm_maxlen: "},
                                          {"--gpu-memory-utilization ", "vllm_gpu_util: "},
                                          {"--enforce-eager", "vllm_enforce_eager: true"}};
  if (view.job().system != System::vllm || view.has_job()) return;
  const bool harness = !view.log_says("lm_eval|lm-eval|lm-evaluation-harness").empty();
  const bool swift = !view.log_says("swift infer|swift deploy|swift eval|ms-swift").empty();
  const bool factory = !view.log_says("llamafactory|llama-factory|llama factory|vllm_maxlen|vllm_gpu_util").empty();
  for (Remedy& remedy : findings.remedies) {
    if (harness) {
      const std::string set = spelt(remedy.set, kOfHarnesses);
      if (set != remedy.set) replace_set(remedy, set + " in --model_args");
    } else if (swift) {
      replace_set(remedy, spelt(remedy.set, kOfSwift));
    } else if (factory) {
      replace_set(remedy, spelt(remedy.set, kOfLlamaFactory));
    }
  }
}

// What a command line of Windows calls "export".
void spell_for_windows(const CaseView& view, Findings& findings) {
  constexpr std::string_view kExport = "export ";
  if (windows_word(view.incident().log_text).empty()) return;
  for (Remedy& remedy : findings.remedies)
    if (remedy.set.starts_with(kExport)) remedy.set.replace(0, kExport.size(), "set ");
}

// What the inputs are, where the post says it: images alone have no texts, clouds have points.
void name_the_inputs(const CaseView& view, Findings& findings) {
  constexpr std::string_view kTexts = ", shorter texts", kGeneral = "smaller inputs: a lower resolution";
  constexpr std::string_view kPoints =
      "point cloud|pointcloud|point-cloud|superpoint|lidar|pointnet|point_cloud|pointtransformer|point "
      "transformer|pointconv|点云|点群";
  const bool points = !any_word(view.incident().log_text, kPoints).empty();
  constexpr std::string_view kAnyInput = "a smaller input: image size, length, a video in chunks";
  const bool texts = names_texts(view) && !speaks_of_images(view);
  for (Remedy& remedy : findings.remedies) {
    if (remedy.name == "input-size" && texts && remedy.set.starts_with(kAnyInput)) {
      replace_set(remedy, "a shorter input: fewer tokens at a time");
      remedy.effect = "tokens beyond the cut are not seen";
    }
    if (remedy.name != "input-size" || !remedy.set.starts_with(kGeneral)) continue;
    if (points) {
      replace_set(remedy, "fewer points: half of them, larger voxels, or a smaller crop of the scene");
      remedy.effect = "smaller scenes: less detail is seen";
    } else if (!video_word(view).empty()) {
      replace_set(remedy, "fewer frames at once: shorter clips, every second frame; then a lower resolution, or crops");
      remedy.effect = "shorter or smaller clips: less is seen at once";
    } else if (images_alone(view)) {
      replace_set(remedy, without_words(remedy.set, kTexts).substr(0, remedy.set.find(kTexts)));
    }
  }
}

// A quarter of many workers, and of what each of them prefetches, instead of none.
void name_the_workers(const CaseView& view, Findings& findings) {
  constexpr std::string_view kNone = "DataLoader(..., num_workers=0)";
  constexpr int64_t kMany = 8;
  const std::string& log = view.incident().log_text;
  const int64_t workers = posted_value(log, "num_workers").value_or(0);
  if (view.has_job() || workers < kMany) return;
  const bool prefetches = posted_value(log, "prefetch_factor").value_or(2) > 2;
  for (Remedy& remedy : findings.remedies)
    if (remedy.name == "fewer-workers" && remedy.set == kNone)
      replace_set(remedy, fmt::format("DataLoader(..., num_workers={}{}), or 0", workers / 4,
                                      prefetches ? ", prefetch_factor=2" : ""));
}

// The line is a command of an installed program, "ketchup train -f x --fast": behind a prompt, or after a fence.
bool of_an_installed_program(std::string_view line, bool fenced) {
  const bool prompt = line.starts_with("$ ");
  if (prompt) line.remove_prefix(2);
  if (!(prompt || fenced) || line.find(" -") == std::string_view::npos) return false;
  const std::string_view program = line.substr(0, line.find(' '));
  constexpr std::string_view kOthers =
      "python|python3|pip|pip3|conda|sudo|docker|git|export|bash|sh|srun|sbatch|torchrun|accelerate|deepspeed|"
      "cd|import|nvidia-smi|free|uv|apt|apt-get|kubectl|podman|mpirun";
  const bool named = !program.empty() && std::all_of(program.begin(), program.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return named && any_word("|" + std::string(kOthers) + "|", "|" + std::string(program) + "|").empty();
}
bool by_an_installed_program(const CaseView& view) {
  const std::string& log = view.incident().log_text;
  if (!view.log_says(".py|import torch|dataloader(|num_workers").empty()) return false;  // code of the person's own
  bool fenced = false, found = false;
  for (size_t at = 0; at < log.size() && !found;) {
    const size_t end = std::min(log.find('\n', at), log.size());
    const std::string_view line = std::string_view(log).substr(at, end - at);
    found = of_an_installed_program(line, fenced);
    if (!line.empty()) fenced = line.starts_with("```");
    at = end + 1;
  }
  return found;
}

// Such a program has options, not code.
void name_options_instead_of_code(const CaseView& view, Findings& findings) {
  if (view.has_job() || view.pool() != Pool::host || !by_an_installed_program(view)) return;
  constexpr std::string_view kLoader = "DataLoader(..., num_workers=0)",
                             kModel = ", a model with low_cpu_mem_usage=True";
  for (Remedy& remedy : findings.remedies) {
    if (remedy.name == "fewer-workers" && remedy.set.starts_with(kLoader))
      replace_set(remedy, "fewer loader processes, by the program's own option (--workers 0, --num-workers 0)" +
                              remedy.set.substr(kLoader.size()));
    if (const size_t at = remedy.set.find(kModel); at != std::string::npos) {
      std::string set = remedy.set;
      replace_set(remedy, set.erase(at, kModel.size()));
    }
  }
}

// Without worker processes, as the post's own toolbox spells it.
void name_the_workers_option(const CaseView& view, Findings& findings) {
  struct Toolbox {
    std::string_view words, set;
  };
  constexpr Toolbox kToolboxes[] = {
      {"ultralytics|yolov3|yolov5|yolov7|yolov8|yolov9|yolov10|yolo11|yolo train|training yolo",
       "--workers 0 (workers=0)"},
      {"mmdet|mmseg|mmpose|openmmlab", "num_workers=0 (2.x: data.workers_per_gpu=0), persistent_workers=False"},
      {"detectron2|ims_per_batch", "DATALOADER.NUM_WORKERS 0"}};
  constexpr std::string_view kGeneral = "DataLoader(..., num_workers=0)";
  if (view.has_job()) return;
  for (const Toolbox& toolbox : kToolboxes) {
    if (view.log_says(toolbox.words).empty()) continue;
    for (Remedy& remedy : findings.remedies)
      if (remedy.name == "fewer-workers" && remedy.set.starts_with(kGeneral))
        replace_set(remedy, std::string(toolbox.set) + remedy.set.substr(kGeneral.size()));
    return;
  }
}

// A model that is quantised already has smaller files of the same kind.
void name_a_smaller_file(const CaseView& view, Findings& findings) {
  constexpr std::string_view kLarge = "q8_0|q8 |q6_k", kOffered = "an fp8, NF4 or GGUF model";
  if (view.log_says(kLarge).empty()) return;
  for (Remedy& remedy : findings.remedies)
    if (remedy.name == "quantized-model" && remedy.set.starts_with(kOffered))
      replace_set(remedy, "a smaller file of the model: Q5_K_S or Q4_K_S, and the text encoder (T5) in fp8 or GGUF");
}

// llama.cpp behind its Python package, which takes arguments, not options.
void spell_for_llama_cpp_in_python(const CaseView& view, Findings& findings) {
  constexpr Spelling kArguments[] = {
      {"--n-gpu-layers ", "n_gpu_layers="},
      {"--ctx-size ", "n_ctx="},
      {"-c 4096 (--ctx-size; n_ctx= in Python)", "n_ctx=4096"},
      {"-b 128 (n_batch=128 in Python)", "n_batch=128"},
      {"--ubatch-size ", "n_batch="},
      {"--cache-type-k q8_0 --cache-type-v q8_0 --flash-attn on", "type_k=8, type_v=8, flash_attn=True"},
      {"-m: a smaller file", "model_path: a smaller file"},
      {"--tensor-split ", "tensor_split="}};
  if (llama_cpp_in_python(view).empty()) return;
  for (Remedy& remedy : findings.remedies) replace_set(remedy, spelt(remedy.set, kArguments));
}

// The environment variable is of 1.13 and later; sessions take the option.
void spell_for_tensorflow_1(const CaseView& view, Findings& findings) {
  constexpr std::string_view kFirst =
      "tensorflow 1.|tensorflow-1.|tensorflow1.|tensorflow-gpu 1.|tensorflow_gpu 1.|tensorflow-gpu==1.|"
      "tensorflow_gpu==1.|tensorflow==1.|tf 1.|tf1.|tf.session|tf.configproto|tf.placeholder|tf.contrib|"
      "failed to create session|(see above for traceback)|cpu_feature_guard.cc:45";
  constexpr Spelling kSession[] = {
      {"model.fit(..., batch_size=<half>) or dataset.batch(<half>)", "a smaller batch: half of batch_size"},
      {"export TF_FORCE_GPU_ALLOW_GROWTH=true",
       "config = tf.ConfigProto(); config.gpu_options.allow_growth = True; tf.Session(config=config)"}};
  if (view.log_says(kFirst).empty()) return;
  for (Remedy& remedy : findings.remedies) replace_set(remedy, spelt(remedy.set, kSession));
}

struct BatchOption {
  std::string name;  // "--batch_size ", "batch_size=", with what stands before its number
  int64_t rows = 0;
};

bool of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// Names of options for the batch, as a command has them: "--batch_size", "batch=" of YOLO, "-b" of YOLOX.
bool names_the_batch(std::string_view name, char behind) {
  constexpr std::string_view kOthers = "eval|val|test|batches|sampl|global|token|norm";
  if (name == "-b" || name == "-bs") return behind == ' ';
  if (name == "batch") return behind == '=';
  return name.starts_with("--") && find_text(name, "batch") != std::string_view::npos &&
         any_word(name.substr(2), kOthers).empty() && (behind == ' ' || behind == '=');
}

// The first option for the batch in a command of the post, and its number.
std::optional<BatchOption> batch_option(const std::string& log) {
  for (const std::string_view part : {"batch", " -b "})
    for (size_t at = find_text(log, part); at != std::string::npos; at = find_text(log, part, at + 4)) {
      size_t begin = part.front() == ' ' ? at + 1 : at, end = begin;
      while (begin > 0 && of_a_name(log[begin - 1])) --begin;
      while (end < log.size() && of_a_name(log[end])) ++end;
      if (end >= log.size() || !names_the_batch(std::string_view(log).substr(begin, end - begin), log[end])) continue;
      size_t number = end + 1;
      while (number < log.size() && (log[number] == '"' || log[number] == '\'')) ++number;
      const int64_t rows = std::strtoll(log.c_str() + number, nullptr, 10);
      if (rows > 0) return BatchOption{log.substr(begin, end - begin + 1), rows};
    }
  return std::nullopt;
}

// Half of what the post's own option says, instead of code that the post may not have.
void name_the_batch_option(const CaseView& view, Findings& findings) {
  constexpr std::string_view kGeneral[] = {
      "DataLoader(..., batch_size=", "model.fit(..., batch_size=",    "a smaller batch_size: ",
      "a smaller batch: half of it", "half of batch= (--batch-size)", "\"train_micro_batch_size_per_gpu\": <half>"};
  const bool by_deepspeed = view.job().system == System::deepspeed;  // the script's own options
  if (view.has_job() || !(unknown_program(view) || by_deepspeed)) return;
  std::optional<BatchOption> option = batch_option(view.incident().log_text);
  if (!option) option = batch_option(view.incident().setup_text);
  if (!option || option->rows < 2) return;
  for (Remedy& remedy : findings.remedies) {
    const bool general = std::any_of(std::begin(kGeneral), std::end(kGeneral),
                                     [&](std::string_view words) { return remedy.set.starts_with(words); });
    if (remedy.name == "micro-batch" && general) replace_set(remedy, option->name + std::to_string(option->rows / 2));
  }
}

// Arguments that the post passes already are left out, and a remedy of nothing else with them.
void leave_out_what_is_passed(const CaseView& view, Findings& findings) {
  const std::string post = view.incident().log_text + "\n" + view.incident().setup_text;
  std::erase_if(findings.remedies, [&](Remedy& remedy) {
    if (!remedy.changes.empty() || remedy.set.find("(...") == std::string::npos) return false;
    std::string left = without_posted_arguments(remedy.set, post);
    if (left.empty()) {
      findings.refused.push_back({remedy.name, "the post passes these arguments already"});
      return true;
    }
    replace_set(remedy, std::move(left));
    return false;
  });
}

}  // namespace

void respell(const CaseView& view, Findings& findings) {
  leave_out_what_is_in_force(view, findings);
  name_shards(view, findings);
  spell_for_the_trainer(view, findings);
  spell_for_an_inner_engine(view, findings);
  name_the_batch_option(view, findings);
  name_the_inputs(view, findings);
  name_the_workers(view, findings);
  name_the_workers_option(view, findings);
  name_options_instead_of_code(view, findings);
  name_a_smaller_file(view, findings);
  leave_out_what_is_passed(view, findings);
  spell_for_llama_cpp_in_python(view, findings);
  spell_for_tensorflow_1(view, findings);
  spell_for_windows(view, findings);
}

}  // namespace headroom::doctor
