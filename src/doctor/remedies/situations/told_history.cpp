// What a post tells of earlier runs: the same ran before, another run in the same process came first, or a part of the
// network was frozen.
#include <fmt/format.h>

#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool of_a_device(const CaseView& view) { return !view.has_job() && view.pool() == Pool::device; }
bool of_the_host(const CaseView& view) { return !view.has_job() && view.pool() == Pool::host; }

constexpr std::string_view kRanBefore =
    "used to work|used to run|used to fit|used to be fine|worked before|worked fine before|worked well before|"
    "previously worked|ran before|ran fine before|worked yesterday|was working fine|was working before|was working "
    "yesterday|never did before|never happened before|did not happen before|didn't happen before|no problem before|no "
    "problems before|worked last week|worked a week|successfully for months|successfully for weeks|worked for months|"
    "worked for weeks|no longer works|no longer runs|no longer fits|stopped working|"
    "之前可以|以前可以|之前没有问题|之前没问题|以前没问题|以前没有问题|之前能跑|以前能跑|之前都可以|之前都能|之前一直|"
    "前は動い|以前は動い|昨日まで";

Evidence worked_earlier(const CaseView& view) {
  constexpr std::string_view kAnymore = "anymore|any more", kDoes = "run|use|train|work|load|start|generate|fit";
  std::string_view found;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    const bool code = sentence.find("file \"") != std::string_view::npos;
    if (!code && sentence.find('?') == std::string_view::npos) found = affirmed_word(sentence, kRanBefore);
    if (!code && found.empty() && !any_word(sentence, kDoes).empty()) found = any_word(sentence, kAnymore);
    return !found.empty();
  });
  return found.empty() ? Evidence{} : Evidence{0.9, fmt::format("`{}` in the post", found)};
}

// Memory that grows with runs of a whole training, and not with its steps.
Evidence kept_from_run_to_run(const CaseView& view) {
  constexpr std::string_view kRuns =
      "passing experiment|each experiment|every experiment|next experiment|each trial|every trial|each fold|every fold|"
      "each episode of training|every fit|each fit|each call of fit|model is created again|new model each|grid search|"
      "gridsearch|hyperparameter search|hyper-parameter search|optuna|cross validation|cross-validation|k-fold|"
      "every time i train|each time i train|每次实验|交叉验证|每一折|每折|交差検証";
  const std::string& log = view.incident().log_text;
  const std::string_view runs = any_word(log, kRuns), grows = view.story().growing;
  if (runs.empty() || grows.empty()) return {};
  return {0.9, fmt::format("`{}` and `{}` in the post", grows, runs)};
}

bool trains_a_part(const CaseView& view) { return training_on_device(view) && unknown_program(view); }

// A line of code alone, quoted as the one that fails: the weights go to the device there.
bool moves_a_model(const CaseView& view) {
  return on_device(view) && !view.has_job() && !view.figures().requested && view.log_says("file \"").empty();
}

constexpr std::string_view kOfALaterRelease =
    "what changed since: releases of the program and its libraries (pip list), the driver; go back to those that ran";

constexpr Situation kSituations[] = {
    {"ran_before",
     "by the post the same ran before: what changed is what else holds the device, or a release",
     of_a_device,
     {},
     {{"end-other-processes",
       "nvidia-smi: what else holds the device? A restart of the machine or notebook ends what an earlier run left"},
      {"other-version", kOfALaterRelease}},
     worked_earlier},
    {"ran_before_on_the_host",
     "by the post the same ran before: what changed is what else holds host memory, or a release",
     of_the_host,
     {},
     {{"end-other-processes", "free -g, the task manager: other programs closed, or the machine restarted"},
      {"other-version", kOfALaterRelease},
      {"host-memory"}},
     worked_earlier},
    {"kept_from_run_to_run",
     "it grows from run to run in one process: models, graphs and optimizers of the earlier ones stay",
     of_the_host,
     {},
     {{"empty-cache",
       "before the next run: del model, optimizer; gc.collect(); torch.cuda.empty_cache() (TensorFlow: "
       "tf.keras.backend.clear_session(), tf.compat.v1.reset_default_graph())"},
      {"detach-history", "each run in a process of its own (subprocess, joblib): what it held goes with it"}},
     kept_from_run_to_run},
    {"trained_with_its_backbone",
     "a part that was frozen is trained too: what its layers keep, its gradients and its states come on top",
     trains_a_part,
     {{log, 0.86,
       "unfreez|unfrozen|unfroze|freeze=false|freeze: false|freeze_backbone false|feature_extract设置为false|"
       "feature_extract=false|requires_grad = true|requires_grad=true|解冻|参与训练|参与微调|一起训练|凍結解除"}},
     {{"freeze",
       "the pretrained part frozen again (requires_grad_(False), its forward pass under torch.no_grad()), or only its "
       "last layers trained"},
      {"micro-batch", "a smaller batch for this phase: a half or a quarter of that of the frozen one"},
      {"checkpointing"}}},
    {"fails_as_it_moves",
     "it fails as the weights go to the device, before any input: somebody else holds it, or the model is too large",
     moves_a_model,
     {{log, 0.86,
       "`model.to(device)`|`model.cuda()`|`model.to('cuda')`|`model.to(\"cuda\")`|at model.to(|on "
       "model.to(|in model.to(|at model.cuda(|on model.cuda("}},
     {{"end-other-processes",
       "nvidia-smi before it starts: an earlier run, a notebook or an IDE that still holds the device, ended"},
      {"half-inference", "16 bits: model.half().to(device), or torch_dtype=torch.float16 where it is loaded"},
      {"smaller-model"}}},
};

}  // namespace

std::span<const Situation> told_history_situations() { return kSituations; }

}  // namespace headroom::doctor
