#include "engine/model_fit.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "engine/inference_request.h"
#include "engine/process_bytes.h"
#include "engine/training_request.h"
#include "passes/precisions.h"
#include "planner/search.h"
#include "weights/objective.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// The folders with a config.json, in the order of their names.
std::vector<fs::path> model_folders(const fs::path& directory) {
  std::vector<fs::path> out;
  const auto add = [&](const fs::path& folder) {
    std::error_code status;
    if (fs::is_regular_file(folder / "config.json", status)) out.push_back(folder);
  };
  std::error_code status;
  if (!fs::is_directory(directory, status))
    throw Error(ErrorKind::usage, fmt::format("--suggest-models {}: there is no such folder", directory.string()),
                "give a folder that holds model folders");
  add(directory);
  fs::recursive_directory_iterator at(directory, fs::directory_options::skip_permission_denied, status);
  for (const fs::recursive_directory_iterator end; !status && at != end; at.increment(status)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) add(at->path());
  }
  if (status)
    throw Error(ErrorKind::usage, fmt::format("--suggest-models {}: {}", directory.string(), status.message()),
                "check the folder's permissions");
  if (out.empty())
    throw Error(ErrorKind::usage,
                fmt::format("--suggest-models {}: no folder in it has a config.json", directory.string()),
                "give a folder that holds model folders");
  std::sort(out.begin(), out.end());
  return out;
}

// Why it does not work; empty if it does. A model that runs into a defect is a row like any other.
template <typename Work>
std::string reason_of(Work work) {
  try {
    work();
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

void fit_training(const TrainOptions& options, const ModelFiles& model, ModelFit::Training& out) {
  const Plan plan = search_training_plan(training_request(options, model)).plan;
  out.feasible = plan.feasible;
  out.minimum_bytes = plan.minimum_bytes;
  out.step_seconds = plan.step_seconds;
  out.techniques = taken_techniques(plan);
}

// As `generate` without a prompt books it.
PlanRequest serving_request(const TrainOptions& options, const ModelFiles& model) {
  TechniqueOptions techniques;
  if (const Precision* const precision = find_precision(options.techniques.precision);
      precision && !precision->keeps_fp32)
    techniques.precision = precision->word;
  PlanRequest request = inference_request(options.machine, techniques, model, true);
  book_prompt(request, model, 0, 0);
  if (const std::optional<Tokenizer> tokenizer = tokenizer_of(model)) book_encoding(request, *tokenizer, 0);
  return request;
}

// The longest sequence that fits; longer ones never need less. Doubles the length until one does not fit, then bisects.
int64_t most_tokens(const PlanRequest& request, const ModelSpec& spec) {
  const auto fits = [&](int64_t tokens) { return generation_plan(request, spec, {1, tokens - 1}).feasible; };
  if (!fits(2)) return 0;
  int64_t holds = 2, fails = spec.max_positions + 1;
  while (holds < spec.max_positions && fails > spec.max_positions) {
    const int64_t tokens = std::min(2 * holds, spec.max_positions);
    (fits(tokens) ? holds : fails) = tokens;
  }
  while (fails - holds > 1) {
    const int64_t tokens = (holds + fails) / 2;
    (fits(tokens) ? holds : fails) = tokens;
  }
  return holds;
}

void fit_serving(const TrainOptions& options, const ModelFiles& model, ModelFit::Serving& out) {
  refuse_quantized(model, "generate with");
  refuse_without_head(model, "generate with");
  refuse_without_text(model);
  if (model.spec.max_positions < 2)
    throw Error(ErrorKind::usage,
                fmt::format("{}: one position leaves no room for an answer", model.config.source.string()),
                "use a model with more positions");
  const int64_t length = std::max<int64_t>(2, sequence_length(options.data, model.spec));
  const PlanRequest request = serving_request(options, model);
  const Plan plan = generation_plan(request, model.spec, {1, length - 1});
  out.feasible = plan.feasible;
  out.minimum_bytes = plan.minimum_bytes;
  out.max_tokens = most_tokens(request, model.spec);
}

ModelFit fit_of(TrainOptions options, const fs::path& folder) {
  ModelFit fit;
  fit.path = folder;
  options.model.path = folder;
  ModelFiles model;
  fit.train.reason = fit.serve.reason = reason_of([&] { model = open_model(folder); });
  if (!fit.train.reason.empty()) return fit;
  fit.family = model.spec.family;
  fit.parameters = parameter_count(model.spec);
  fit.train.reason = reason_of([&] { fit_training(options, model, fit.train); });
  fit.serve.reason = reason_of([&] { fit_serving(options, model, fit.serve); });
  return fit;
}

// Ascending is better.
auto place_of(const ModelFit& fit) {
  const int group = fit.family.empty() ? 3 : fit.train.feasible ? 0 : fit.serve.feasible ? 1 : 2;
  return std::tuple(group, -fit.parameters, fit.path);
}

}  // namespace

std::vector<ModelFit> fitting_models(const TrainOptions& options, const fs::path& directory) {
  std::vector<ModelFit> models;
  for (const fs::path& folder : model_folders(directory)) models.push_back(fit_of(options, folder));
  std::sort(models.begin(), models.end(),
            [](const ModelFit& a, const ModelFit& b) { return place_of(a) < place_of(b); });
  return models;
}

}  // namespace headroom
