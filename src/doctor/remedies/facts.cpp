#include "doctor/remedies/facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "doctor/remedies/log_job.h"
#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/which_program.h"

namespace headroom::doctor {
namespace {

FactShown open_fact() { return {}; }
FactShown shown_fact() { return {Shown::yes, {}}; }
FactShown denied_fact(std::string against) { return {Shown::no, std::move(against)}; }

FactShown shown_training(const CaseView& view) {
  if (view.serving()) return denied_fact("a server trains nothing");
  if (view.in_a_step()) return shown_fact();
  if (view.has_job()) return view.training() ? shown_fact() : denied_fact("the program only predicts");
  if (!view.inference_word().empty())
    return denied_fact(fmt::format("`{}`: the program only predicts", view.inference_word()));
  return says_training(view) || view.story().task == ToldTask::training ? shown_fact() : open_fact();
}

FactShown shown_prediction(const CaseView& view) {
  if (view.in_a_step()) return denied_fact("it failed in a step of the training");
  if (!view.training() || view.phase("eval") || view.phase("inference") || speaks_of_prediction(view))
    return shown_fact();
  return open_fact();
}

bool while_weights_load(const std::vector<Seen>& seen) {
  return std::any_of(seen.begin(), seen.end(), [](const Seen& one) {
    return one.situation->name == "model_does_not_load" || one.situation->name == "little_of_the_device_while_loading";
  });
}
// Of a job with an estimate the figures decide.
FactShown shown_weights_loaded(const CaseView& view, const std::vector<Seen>& seen) {
  if (view.in_a_step()) return shown_fact();
  if (view.serving() || view.incident().estimate || !while_weights_load(seen)) return open_fact();
  return denied_fact("weights were being loaded: no step was reached");
}

FactShown shown_step_failed(const CaseView& view) {
  if (!view.training() || view.pool() != Pool::device) return open_fact();
  const bool saving = view.phase("checkpoint_save") || told_at(view, ToldStage::saving).weight > 0;
  return saving ? denied_fact("it failed while it saved: the steps fit") : open_fact();
}

FactShown shown_several_rows(const CaseView& view) {
  const int64_t rows = view.job().batch.micro.value_or(0);
  if (rows == 1) return denied_fact("the batch is 1 already");
  return rows > 1 ? shown_fact() : open_fact();
}

bool says_loading(const CaseView& view) {
  return says_training(view) || !view.setup_says("train|loader|worker|dataset").empty() ||
         !view.log_says("loader|worker|batch|dataset|data set|num_|shm|shared|数据|データ|preprocess").empty();
}
// What asked for memory in the process itself, by the log, and no loader's worker.
std::string_view beside_a_loader(const CaseView& view) {
  constexpr std::string_view kLoader = "dataloader|data loader|num_workers|worker|pin_memory|shm|/dev/shm|bus error";
  constexpr std::string_view kReads =
      "torch.load(|from_pretrained|loading checkpoint shards|loading the model|loading model|load the model|"
      "while loading|python server.py|加载模型|模型加载|モデルの読み込み|モデルをロード";
  if (view.pool() != Pool::host || view.has_job() || !view.log_says(kLoader).empty()) return {};
  if (const std::string_view reads = view.log_says(kReads); !reads.empty()) return reads;
  return view.log_says("file \"").empty() ? std::string_view() : view.log_says("memoryerror");
}
FactShown shown_pinned(const CaseView& view) {
  constexpr std::string_view kPins = "pin_memory|pin-memory|pinned|cudahostalloc|cudamallochost|hostalloc|host_malloc";
  if (view.has_job() || view.says(kPins)) return open_fact();
  return denied_fact("nothing shows that batches are pinned");
}
FactShown shown_loader(const CaseView& view) {
  if (const std::string_view reads = beside_a_loader(view); !reads.empty())
    return denied_fact(fmt::format("`{}`: no loader's worker asked for it", reads));
  if (view.message() && view.message()->framework == "nccl")
    return denied_fact("the segment is one of NCCL's: no loader asked for it");
  if (view.has_job() || view.pool() != Pool::host || says_loading(view)) return open_fact();
  if (view.log_says("exited with code|docker|container|failed to solve:|executor failed running").empty())
    return open_fact();
  return denied_fact("nothing shows that a loader works there");
}

FactShown shown_swap(const CaseView& view) {
  if (view.pool() != Pool::host) return open_fact();
  if (!view.log_says("colab|kaggle").empty()) return denied_fact("a hosted notebook has no swap to enlarge");
  if (!view.log_says("oomkilled|kubernetes|kubectl|kubeflow").empty())
    return denied_fact("a pod's limit does not grow with swap");
  return open_fact();
}

FactShown shown_images(const CaseView& view) {
  if (speaks_of_images(view)) return shown_fact();
  return view.has_job() || !speaks_of_texts(view) ? open_fact() : denied_fact("the inputs are texts");
}

FactShown shown_texts(const CaseView& view) {
  if (view.has_job() || speaks_of_texts(view)) return shown_fact();
  return images_alone(view) ? denied_fact("the inputs are images") : open_fact();
}

FactShown shown_pytorch(const CaseView& view) {
  const std::string_view other = other_framework(view);
  return other.empty() ? open_fact() : denied_fact(fmt::format("the log is of {}, not of PyTorch", other));
}

// "cached", and "reserved" without the hint of max_split_size, are words of PyTorch 1.
bool worded_by_torch_1(const CaseView& view) {
  const std::string_view format = view.message() ? std::string_view(view.message()->format) : std::string_view();
  return format == "torch1_cached" || format == "torch1_reserved";
}
FactShown shown_pytorch_2(const CaseView& view) {
  const Version& stated = view.incident().software.torch;
  const bool before =
      stated.major > 0 ? stated.major < 2 : prints_torch_1(view.incident().log_text) || worded_by_torch_1(view);
  return before ? denied_fact("PyTorch has this function since 2.0") : open_fact();
}

FactShown shown_segments(const CaseView& view) {
  const std::string_view windows = windows_word(view.incident().log_text);
  return windows.empty() ? open_fact() : denied_fact("PyTorch has no expandable segments on Windows");
}

}  // namespace

std::string_view other_framework(const CaseView& view) {
  if (view.has_job()) return {};
  if (!view.other_program().name.empty()) return view.other_program().name;
  constexpr std::string_view kNeverInPyTorch = "tensorflow|jax|paddle|mlx";  // CuPy and ONNX Runtime may work beside it
  if (view.foreign_framework() && !any_word(kNeverInPyTorch, view.framework()).empty()) return view.framework();
  return named_framework(view.incident().log_text, view.incident().setup_text);
}

bool says_training(const CaseView& view) {
  return !view.log_says("train|finetun|fine-tun|fine tun|epoch|backward|optimizer|loss|iter|训练|微调|学習|訓練")
              .empty();
}

Facts::Facts(const CaseView& view, const std::vector<Seen>& seen) {
  const auto set = [&](Fact fact, FactShown shown) { all_[static_cast<size_t>(fact)] = std::move(shown); };
  set(Fact::training, shown_training(view));
  set(Fact::prediction, shown_prediction(view));
  set(Fact::weights_loaded, shown_weights_loaded(view, seen));
  set(Fact::step_failed, shown_step_failed(view));
  set(Fact::several_rows, shown_several_rows(view));
  set(Fact::loader, shown_loader(view));
  set(Fact::pinned, shown_pinned(view));
  set(Fact::swap_can_grow, shown_swap(view));
  set(Fact::images, shown_images(view));
  set(Fact::texts, shown_texts(view));
  set(Fact::pytorch, shown_pytorch(view));
  set(Fact::pytorch_2, shown_pytorch_2(view));
  set(Fact::segments_grow, shown_segments(view));
}

}  // namespace headroom::doctor
