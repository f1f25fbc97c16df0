#include "engine/length_cuts.h"

#include <filesystem>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "data/token_cache_builder.h"
#include "engine/training_request.h"
#include "formats/temporary_place.h"
#include "planner/search.h"
#include "weights/objective.h"

namespace headroom {
namespace {

LengthHistogram read_lengths(const TrainOptions& options, const ModelFiles& model) {
  const DataOptions data = data_for(model, options.data.train, sequence_length(options.data, model.spec));
  const std::optional<Tokenizer> tokenizer = tokenizer_of(model);
  const std::filesystem::path place = temporary_place_on_disk(".", "the data's tokens");
  return build_nameless_token_cache(data, tokenizer ? &*tokenizer : nullptr, place).counts().lengths;
}

std::string share(int64_t part, int64_t whole) {
  return whole == 0 ? "0 %" : fmt::format("{:.2f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

std::string explain_cuts(const TrainOptions& options, const ModelFiles& model) {
  const LengthHistogram lengths = read_lengths(options, model);
  if (lengths.rows() == 0) return "data: no rows, only text, which is cut into sequences without loss\n";
  std::string text = fmt::format("data: {} rows of {} tokens; half have up to {}, 95 % up to {}\n", lengths.rows(),
                                 lengths.tokens(), lengths.quantile(0.5), lengths.quantile(0.95));
  text += fmt::format("  {:>16}  {:>10}  {:>12}  {:>8}  {:>12}  {:>12}  {:>10}\n", "--max-seq-length", "rows cut",
                      "tokens lost", "", "least budget", "peak", "step");
  for (int64_t cut : length_cuts(model.spec.max_positions)) {
    TrainOptions shorter = options;
    shorter.data.max_seq_length = cut;
    const Plan plan = search_training_plan(training_request(shorter, model)).plan;
    text += fmt::format("  {:>16}  {:>10}  {:>12}  {:>8}  {:>12}  {:>12}  {:>10}\n", cut, lengths.cut_rows(cut),
                        lengths.lost_tokens(cut), share(lengths.lost_tokens(cut), lengths.tokens()),
                        format_bytes(plan.minimum_bytes), plan.feasible ? format_bytes(plan.peak_bytes) : "too large",
                        plan.feasible ? fmt::format("{:.3f} s", plan.step_seconds) : "");
    if (lengths.cut_rows(cut) == 0) break;
  }
  return text;
}

}  // namespace headroom
