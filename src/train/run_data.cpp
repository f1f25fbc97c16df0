#include "train/run_data.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "data/token_cache_builder.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

bool is_name(std::string_view text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !text.empty() && text.size() <= 64 && text[0] != '.' && std::all_of(text.begin(), text.end(), plain);
}

fs::path cache_name(const std::string& set) {
  return set.empty() ? "token-cache-eval.bin" : fmt::format("token-cache-eval-{}.bin", set);
}

class Caches {
 public:
  Caches(const TrainOptions& options, const ModelFiles& model, int64_t seq_length)
      : options_(options), model_(model), seq_length_(seq_length) {}

  TokenCache open(const std::vector<fs::path>& files, const fs::path& name) const {
    DataOptions data;
    data.files = files;
    data.max_seq_length = seq_length_;
    data.vocab_size = model_.spec.vocab;
    data.tokenizer_folder = model_.directory;
    std::error_code status;
    std::optional<Tokenizer> tokenizer;
    if (fs::exists(model_.directory / "tokenizer.json", status)) tokenizer.emplace(Tokenizer::load(model_.directory));
    return open_or_build_token_cache(data, tokenizer ? &*tokenizer : nullptr, options_.output_dir / name);
  }

 private:
  const TrainOptions& options_;
  const ModelFiles& model_;
  int64_t seq_length_;
};

}  // namespace

std::vector<EvaluationFiles> evaluation_files(std::span<const std::string> values) {
  std::vector<EvaluationFiles> sets;
  for (const std::string& value : values) {
    std::error_code status;
    const size_t equals = fs::exists(value, status) ? std::string::npos : value.find('=');
    const std::string name = equals == std::string::npos ? "" : value.substr(0, equals);
    if (equals != std::string::npos && !is_name(name))
      throw Error(ErrorKind::usage, fmt::format("--eval-data {}: '{}' is no name for a set", value, name),
                  "write NAME=FILE, the name of letters, digits, '_', '-' and '.'");
    auto set = std::find_if(sets.begin(), sets.end(), [&](const EvaluationFiles& s) { return s.name == name; });
    if (set == sets.end()) set = sets.insert(sets.end(), {name, {}});
    set->files.emplace_back(equals == std::string::npos ? value : value.substr(equals + 1));
  }
  return sets;
}

void check_evaluation(const TrainOptions& options) {
  evaluation_files(options.eval_data);
  if (!options.eval_data.empty() || !(options.load_best_model_at_end || options.early_stopping_patience > 0)) return;
  throw Error(ErrorKind::usage,
              fmt::format("--{} without evaluation",
                          options.load_best_model_at_end ? "load-best-model-at-end" : "early-stopping-patience"),
              "give --eval-data FILE");
}

RunData open_run_data(const TrainOptions& options, const ModelFiles& model, int64_t seq_length, bool resumes) {
  const std::vector<EvaluationFiles> sets = evaluation_files(options.eval_data);
  const Caches caches(options, model, seq_length);
  try {
    RunData data{caches.open(options.data, "token-cache.bin"), {}};
    for (const EvaluationFiles& set : sets)
      data.evaluation.push_back({set.name, caches.open(set.files, cache_name(set.name))});
    return data;
  } catch (...) {
    std::error_code status;
    if (!resumes) {
      fs::remove(options.output_dir / "token-cache.bin", status);
      for (const EvaluationFiles& set : sets) fs::remove(options.output_dir / cache_name(set.name), status);
    }
    throw;
  }
}

std::string describe_data(const TokenCache& cache) {
  const DataCounts& counts = cache.counts();
  return fmt::format("data: {} sequences, {} tokens, {} scored; token cache {}{}", counts.sequences, counts.tokens,
                     counts.targets, format_bytes(cache.file_bytes()),
                     counts.lost_tokens > 0
                         ? fmt::format("; {} tokens lost in {} cut rows", counts.lost_tokens, counts.cut_rows)
                         : "");
}

}  // namespace headroom
