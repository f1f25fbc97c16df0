#include <fmt/format.h>

#include "base/bytes.h"
#include "base/count_text.h"
#include "base/least_bytes.h"
#include "engine/model_fit.h"
#include "formats/json.h"

namespace headroom {
namespace {

// Null if there is no figure.
template <typename Figure>
Json known(Figure figure) {
  return figure > 0 ? Json(figure) : Json();
}

void add_reason(const std::string& reason, Json& to) {
  if (!reason.empty()) to["reason"] = reason;
}

Json fit_json(const ModelFit& fit) {
  Json train{{"feasible", fit.train.feasible},
             {"minimum_bytes", known(fit.train.minimum_bytes)},
             {"step_seconds", known(fit.train.step_seconds)},
             {"techniques", fit.train.techniques}};
  add_reason(fit.train.reason, train);
  Json serve{{"feasible", fit.serve.feasible},
             {"minimum_bytes", known(fit.serve.minimum_bytes)},
             {"max_tokens", fit.serve.max_tokens}};
  add_reason(fit.serve.reason, serve);
  return {{"path", fit.path.string()},
          {"family", fit.family.empty() ? Json() : Json(fit.family)},
          {"parameters", known(fit.parameters)},
          {"train", std::move(train)},
          {"serve", std::move(serve)}};
}

std::string shown_path(const ModelFit& fit, const std::filesystem::path& directory) {
  constexpr size_t kWidth = 28;
  const std::string path = fit.path.lexically_relative(directory).string();
  return path.size() <= kWidth ? path : "..." + path.substr(path.size() - (kWidth - 3));
}

std::string shown_least(int64_t bytes) { return bytes > 0 ? format_least_bytes(bytes) : "unknown"; }

std::string model_row(const ModelFit& fit, const std::filesystem::path& directory) {
  const std::string path = shown_path(fit, directory);
  if (fit.family.empty()) return fmt::format("{:<28} not read\n  {}\n", path, fit.train.reason);
  std::string out = fmt::format(
      "{:<28} {:>7} {:>11} {:>9} {:>11} {:>9}\n", path, format_count(fit.parameters),
      shown_least(fit.train.minimum_bytes), fit.train.feasible ? fmt::format("{:.3f}", fit.train.step_seconds) : "no",
      shown_least(fit.serve.minimum_bytes), fit.serve.max_tokens > 0 ? std::to_string(fit.serve.max_tokens) : "no");
  if (!fit.train.reason.empty()) out += fmt::format("  not trained: {}\n", fit.train.reason);
  if (!fit.serve.reason.empty() && fit.serve.reason != fit.train.reason)
    out += fmt::format("  not served: {}\n", fit.serve.reason);
  return out;
}

}  // namespace

std::string models_json(const std::vector<ModelFit>& models) {
  Json list = Json::array();
  for (const ModelFit& fit : models) list.push_back(fit_json(fit));
  return Json{{"models", std::move(list)}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string models_text(const std::vector<ModelFit>& models, const std::filesystem::path& directory,
                        int64_t budget_bytes) {
  std::string out = fmt::format("budget {}; best first: those that train, then those that serve, by size\n",
                                format_bytes(budget_bytes));
  out += fmt::format("{:<28} {:>7} {:>11} {:>9} {:>11} {:>9}\n", "model", "size", "train from", "step s", "serve from",
                     "tokens");
  for (const ModelFit& fit : models) out += model_row(fit, directory);
  return out;
}

}  // namespace headroom
