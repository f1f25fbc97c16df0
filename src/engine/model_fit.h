// Which of many models train or serve within a budget.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "train/options.h"

namespace headroom {

// The result for one model. Figures are 0 if `reason` says why there are none.
struct ModelFit {
  struct Training {
    bool feasible = false;
    int64_t minimum_bytes = 0;  // least --memory of a run with the options
    double step_seconds = 0;    // of the plan within the budget; 0: it does not fit
    std::map<std::string, std::string> techniques;
    std::string reason;
  };
  struct Serving {
    bool feasible = false;
    int64_t minimum_bytes = 0;  // least --memory for prompt and answer together of the run's sequence length
    int64_t max_tokens = 0;     // of prompt and answer together within the budget; 0: not even one of each
    std::string reason;
  };

  std::filesystem::path path;
  std::string family;  // empty: the model cannot be read
  int64_t parameters = 0;
  Training train;
  Serving serve;
};

// A row for each folder under `directory`, including itself, that holds a config.json; links to folders are not
// followed. Each is planned with the options, whose model is ignored; serving with the precision in which the run keeps
// its weights, the lower tiers and no other technique. Best first: models that train before those that only serve,
// before those that do neither; within each group the largest first; unreadable ones come last. A model that cannot be
// read, planned or served has the reason in its row. Throws Error(usage) if `directory` cannot be read or holds no such
// folder. Takes a second or two per model.
std::vector<ModelFit> fitting_models(const TrainOptions& options, const std::filesystem::path& directory);

// {"models": [...]}, as `plan --suggest-models --json` writes it.
std::string models_json(const std::vector<ModelFit>& models);
// A line per model, reasons below it, paths from `directory` on; for people.
std::string models_text(const std::vector<ModelFit>& models, const std::filesystem::path& directory,
                        int64_t budget_bytes);

}  // namespace headroom
