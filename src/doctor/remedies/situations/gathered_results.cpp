// Results of a whole data set, joined or scored on the device at the end of an evaluation.
#include <fmt/format.h>

#include "doctor/remedies/program_words.h"
#include "doctor/remedies/situations/conditions.h"
#include "doctor/remedies/situations/situation.h"
#include "doctor/remedies/told_stage.h"

namespace headroom::doctor {
namespace {

using enum Sign::In;

bool of_pytorch(const CaseView& view) {
  return on_device(view) && !view.serving() && view.log_says("trainer.evaluate|nested_concat|evaluation_loop").empty();
}
bool of_tensorflow(const CaseView& view) {
  const std::string_view named = named_framework(view.incident().log_text, view.incident().setup_text);
  return view.pool() == Pool::device && (view.framework() == "tensorflow" || named == "tensorflow");
}

// A sentence that says that the parts went well, and joining them did not.
std::string_view joined_at_the_end(const CaseView& view) {
  constexpr std::string_view kJoins = "concat|concating|gathering|put everything together|joining|stacked|merged at";
  constexpr std::string_view kAtTheEnd =
      "at the end|after all|after the predictions|all batches|have been completed|when it is done";
  std::string_view word;
  each_sentence(beginning(view), [&](std::string_view sentence) {
    if (sentence.find("file \"") != std::string_view::npos) return false;
    const std::string_view joins = any_word(sentence, kJoins);
    if (!joins.empty() && !any_word(sentence, kAtTheEnd).empty()) word = joins;
    return !word.empty();
  });
  return word;
}
Evidence predictions_joined(const CaseView& view) {
  if (view.log_says(".predict(|.predict`|in predict|predict on|predict()|prediction loop|predictions").empty())
    return {};
  const std::string_view joins = joined_at_the_end(view);
  return joins.empty() ? Evidence{}
                       : Evidence{0.93, fmt::format("`{}` at the end of the prediction, by the post", joins)};
}

// A frame of a function that scores what was collected before.
Evidence scored_on_the_device(const CaseView& view) {
  constexpr std::string_view kScores =
      "in evaluate_predictions|in evaluate_results|in evaluate_scores|in compute_score|in compute_metric|in "
      "calc_metric|in calculate_metric|in compute_map|in compute_auc|in compute_ap|in compute_recall|in eval_recall|in "
      "score_|in get_scores|in rank_|in retrieval_";
  if (!view.message() || view.message()->frames.empty()) return {};
  const std::string_view frame = view.log_says(kScores);
  return frame.empty() ? Evidence{} : Evidence{0.93, fmt::format("`{}` in the frames", frame)};
}

constexpr Situation kSituations[] = {
    {"results_scored_on_the_device",
     "what the evaluation collected of the whole set is scored at once on the device: neither a batch nor an input "
     "decides, but the number of rows x classes (or pairs)",
     of_pytorch,
     {},
     {{"eval-accumulation",
       "predictions and labels to the host before they are scored: scores.cpu(), the metric's own tensors too"},
      {"find-sample", "scored in parts: a loop over rows or classes, sums kept, and no mask of the whole table"},
      {"no-grad", "with torch.no_grad(): around the evaluation, where it is not yet"}},
     scored_on_the_device},
    {"predictions_joined_on_the_device",
     "predict() keeps the outputs of all batches on the device and joins them there at its end: twice their size",
     of_tensorflow,
     {},
     {{"eval-accumulation",
       "one batch at a time, each result to the host: np.concatenate([model.predict_on_batch(b) for b in batches])"},
      {"find-sample", "predict() over slices of the inputs, some hundred rows each, results written to a file"},
      {"on-cpu", "with tf.device(\"/CPU:0\"): around the joining alone"}},
     predictions_joined},
};

}  // namespace

std::span<const Situation> gathered_situations() { return kSituations; }

}  // namespace headroom::doctor
