// The data of a run as token caches: built before the arena exists, under the output directory.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/pack_index.h"
#include "data/token_cache.h"
#include "plan/plan.h"
#include "train/options.h"
#include "weights/model_files.h"

namespace headroom {

// Files that are evaluated together; without a name if the run has a single plain set.
struct EvaluationFiles {
  std::string name;
  std::vector<std::filesystem::path> files;
};

// The sets that `--eval-data` values name, in their order: NAME=FILE puts FILE into set NAME (letters, digits, `_`, `-`
// and `.`); plain files make one set without a name. A value that is an existing file is a plain one, whatever it
// holds. Throws Error(usage) for a malformed name.
std::vector<EvaluationFiles> evaluation_files(std::span<const std::string> values);

// Checks the names, and that options which need an evaluation have one. Throws Error(usage).
void check_evaluation(const EvaluationOptions& options);

// A token cache and, for a run that packs, which of its sequences share one.
struct SequenceSet {
  std::string name;  // of an evaluation set, or empty
  TokenCache cache;
  std::optional<PackIndex> packs;

  int64_t samples() const { return packs ? packs->packs() : cache.sequences(); }
  // A hash of everything that determines the order of samples, with the seed.
  uint64_t key() const { return packs ? packs->key() : cache.key(); }
  const PackIndex* packs_or_null() const { return packs ? &*packs : nullptr; }
};

struct RunData {
  SequenceSet train;
  std::vector<SequenceSet> evaluation;
};

// Opens or builds the caches of `--data` and `--eval-data` in options.output_dir, which exists, for this plan. If it
// throws, caches of a fresh run are removed (those of a resumed one stay).
RunData open_run_data(const TrainOptions& options, const ModelFiles& model, const Plan& plan, bool resumes);

// "data: 12 sequences, 340 tokens, ..." for people.
std::string describe_data(const SequenceSet& data);

}  // namespace headroom
