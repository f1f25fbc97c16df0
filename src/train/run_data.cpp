#include "train/run_data.h"

#include <malloc.h>

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "base/error.h"
#include "data/token_cache_builder.h"
#include "weights/objective.h"

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

// "token-cache.bin", "token-cache-eval-NAME.bin"
std::string file_name(const char* what, bool evaluates, const std::string& set) {
  return fmt::format("token-{}{}{}{}.bin", what, evaluates ? "-eval" : "", set.empty() ? "" : "-", set);
}

class Sets {
 public:
  Sets(const TrainOptions& options, const ModelFiles& model, const Plan& plan)
      : options_(options), model_(model), choices_(plan.choices), chat_bytes_(chat_bytes_of(plan)) {}

  SequenceSet open(const std::vector<fs::path>& files, bool evaluates, const std::string& name) {
    SequenceSet set{name, open_cache(files, path("cache", evaluates, name)), std::nullopt};
    ::malloc_trim(0);  // the tokenizer's memory
    if (!choices_.flag("packing")) return set;
    const SampleOrder order(set.cache.sequences(), evaluates ? 0 : options_.seed, !evaluates && options_.data.shuffle);
    set.packs = PackIndex::open_or_build(set.cache, order, choices_.seq_length, path("packs", evaluates, name));
    return set;
  }

  void remove_files() const {
    std::error_code status;
    for (const fs::path& path : paths_) fs::remove(path, status);
  }

 private:
  fs::path path(const char* what, bool evaluates, const std::string& name) {
    return paths_.emplace_back(options_.saving.output_dir / file_name(what, evaluates, name));
  }

  TokenCache open_cache(const std::vector<fs::path>& files, const fs::path& path) const {
    const DataOptions data = data_for(model_, files, choices_.seq_length, chat_bytes_);
    const std::optional<Tokenizer> tokenizer = tokenizer_of(model_);
    return open_or_build_token_cache(data, tokenizer ? &*tokenizer : nullptr, path);
  }

  const TrainOptions& options_;
  const ModelFiles& model_;
  const Choices& choices_;
  int64_t chat_bytes_;
  std::vector<fs::path> paths_;
};

}  // namespace

std::vector<EvaluationFiles> evaluation_files(std::span<const std::string> values) {
  std::vector<EvaluationFiles> sets;
  for (const std::string& value : values) {
    std::error_code status;
    const size_t equals = fs::exists(value, status) ? std::string::npos : value.find('=');
    const std::string name = equals == std::string::npos ? "" : value.substr(0, equals);
    if (equals != std::string::npos && !is_name(name))
      throw Error(ErrorKind::usage, fmt::format("--eval-data {}: '{}' cannot name a set", value, name),
                  "write NAME=FILE, the name of letters, digits, '_', '-' and '.'");
    auto set = std::find_if(sets.begin(), sets.end(), [&](const EvaluationFiles& s) { return s.name == name; });
    if (set == sets.end()) set = sets.insert(sets.end(), {name, {}});
    set->files.emplace_back(equals == std::string::npos ? value : value.substr(equals + 1));
  }
  return sets;
}

void check_evaluation(const EvaluationOptions& options) {
  evaluation_files(options.data);
  const char* const given = options.load_best_model_at_end        ? "load-best-model-at-end"
                            : options.early_stopping_patience > 0 ? "early-stopping-patience"
                            : options.eval_steps > 0              ? "eval-steps"
                            : options.eval_max_batches > 0        ? "eval-max-batches"
                                                                  : nullptr;
  if (given && options.data.empty())
    throw Error(ErrorKind::usage, fmt::format("--{} without evaluation", given), "give --eval-data FILE");
}

RunData open_run_data(const TrainOptions& options, const ModelFiles& model, const Plan& plan, bool resumes) {
  Sets sets(options, model, plan);
  try {
    RunData data{sets.open(options.data.train, false, ""), {}};
    for (const EvaluationFiles& set : evaluation_files(options.evaluation.data))
      data.evaluation.push_back(sets.open(set.files, true, set.name));
    return data;
  } catch (...) {
    if (!resumes) sets.remove_files();
    throw;
  }
}

std::string describe_data(const SequenceSet& data) {
  const DataCounts& counts = data.cache.counts();
  std::string text = fmt::format("data: {} sequences, {} tokens, {} scored; token cache {}", counts.sequences,
                                 counts.tokens, counts.targets, format_bytes(data.cache.file_bytes()));
  if (counts.lost_tokens > 0)
    text += fmt::format("; {} tokens lost in {} cut rows", counts.lost_tokens, counts.cut_rows);
  if (data.packs)
    text += fmt::format(
        "; packed into {} of {} tokens, {:.1f} % filled", data.packs->packs(), data.packs->length(),
        100.0 * static_cast<double>(counts.tokens) / static_cast<double>(data.packs->packs() * data.packs->length()));
  return text;
}

}  // namespace headroom
